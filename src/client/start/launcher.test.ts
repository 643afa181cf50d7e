import { expect, onTestFinished, test } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import type { Batch, CommitResult, Store } from "../../store/contract/store.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { Launcher } from "./launcher.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("when an adopted and a queued start both fail, the caller gets an error and no rejection is unhandled", async () => {
  const unhandled: unknown[] = [];
  const onUnhandled = (reason: unknown) => unhandled.push(reason);
  process.on("unhandledRejection", onUnhandled);
  onTestFinished(() => void process.off("unhandledRejection", onUnhandled));
  const unreachable = { commit: () => Promise.reject(new Error("down")) } as unknown as Store;
  const launcher = new Launcher(unreachable, silent, systemRuntime);
  let freeSlots = 1;
  launcher.adopters.add({
    canAdopt: () => freeSlots-- > 0,
    adopt: () => new Promise((_, reject) => setImmediate(reject, new Error("down here"))),
  });
  await expect(launcher.launch([newRun(), newRun()])).rejects.toThrow("down");
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(unhandled).toEqual([]);
});

test("a run that an earlier commit may have written already is not adopted", async () => {
  const committed: string[] = [];
  const commit = async ({ starts }: Batch): Promise<CommitResult> => {
    committed.push(...starts.map(({ id }) => id));
    return { kind: "committed", at: 1, notParked: [], ownedWithMessages: [], refused: [] };
  };
  const launcher = new Launcher({ commit } as unknown as Store, silent, systemRuntime);
  const adopted: string[] = [];
  launcher.adopters.add({
    canAdopt: () => true,
    adopt: async ({ id }) => {
      adopted.push(id);
      return { at: 1, refusal: null };
    },
  });
  const [fresh, repeated] = [newRun(), newRun()];
  await launcher.launch([fresh]);
  await launcher.relaunch(repeated);
  expect([adopted, committed]).toEqual([[fresh.id], [repeated.id]]);
});
