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
    onPausedQueues: () => {},
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

test("none that is asked for is lost, at whatever moment of the one before", async () => {
  for (let moments = 0; moments < 10; moments += 1) {
    let beats = 0;
    const store = {
      beat: async () => {
        beats += 1;
        return { alive: true, mail: [], reaped: [], pausedQueues: [] };
      },
    } as unknown as Store;
    const events = { onLost: () => {}, onMail: () => {}, onPausedQueues: () => {} };
    const lease = new Lease(store, { workerId: "w", epoch: 1 }, 3_600_000, silent, events);
    void lease.beatNow();
    for (let moment = 0; moment < moments; moment += 1) await undefined;
    void lease.beatNow();
    await new Promise((resolve) => setImmediate(resolve));
    lease.stop();
    expect(beats, `asked after ${moments} moments`).toBe(2);
  }
});
