import { expect, onTestFinished, test } from "vitest";
import { systemRuntime } from "../../runtime/system.js";
import type { Store } from "../../store/contract/store.js";
import { newRun } from "../../testing/store-suite/builders.js";
import { Launcher } from "./launcher.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("when adopted and queued starts both fail, the caller hears of it and nobody else does", async () => {
  const stray: unknown[] = [];
  const hear = (reason: unknown) => stray.push(reason);
  process.on("unhandledRejection", hear);
  onTestFinished(() => void process.off("unhandledRejection", hear));
  const down = { commit: () => Promise.reject(new Error("down")) } as unknown as Store;
  const launcher = new Launcher(down, silent, systemRuntime);
  let room = 1;
  launcher.adopters.add({
    canAdopt: () => room-- > 0,
    adopt: () => new Promise((_, reject) => setImmediate(reject, new Error("down here"))),
  });
  await expect(launcher.launch([newRun(), newRun()])).rejects.toThrow("down");
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(stray).toEqual([]);
});
