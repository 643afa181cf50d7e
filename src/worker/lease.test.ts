import { expect, onTestFinished, test } from "vitest";
import type { BeatResult, Store } from "../store/store.js";
import { Lease } from "./lease.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

test("a beat that is asked for while one is under way follows it: that one may have looked too early", async () => {
  const answers: ((result: BeatResult) => void)[] = [];
  const store = { beat: () => new Promise<BeatResult>((resolve) => answers.push(resolve)) } as unknown as Store;
  const mailed: string[] = [];
  const lease = new Lease(store, { workerId: "w", epoch: 1 }, 3_600_000, silent, {
    onLost: () => {},
    onMail: (runIds) => mailed.push(...runIds),
  });
  onTestFinished(() => lease.stop());
  const first = lease.beatNow();
  // Mail has come since the first one looked.
  void lease.beatNow();
  void lease.beatNow();
  expect(answers).toHaveLength(1);
  answers[0]?.({ alive: true, mail: [], reaped: [], pausedQueues: [] });
  await expect.poll(() => answers.length).toBe(2);
  answers[1]?.({ alive: true, mail: ["run"], reaped: [], pausedQueues: [] });
  await first;
  expect(mailed).toEqual(["run"]);
  expect(answers).toHaveLength(2);
});
