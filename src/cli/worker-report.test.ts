import { expect, test } from "vitest";
import type { RunRecord, Store } from "../store/contract/store.js";
import { Output } from "./output.js";
import type { RunEnd } from "./run-ends.js";
import { WorkerReport } from "./worker-report.js";

function terminal() {
  let now = 0;
  const written: string[] = [];
  const stream = { write: (text: string) => written.push(text), isTTY: true, columns: 80 };
  const out = new Output({ stdout: stream, stderr: stream, json: false, debug: false, noColor: "1", now: () => now });
  return {
    out,
    written,
    pass: (ms: number) => {
      now += ms;
    },
  };
}

const emptyStore = { runsById: async () => [] };

function end(
  report: WorkerReport,
  count: number,
  status: RunEnd["status"],
  store = emptyStore as Pick<Store, "runsById">,
) {
  for (let index = 0; index < count; index += 1) report.runEnded({ runId: `${status} ${index}`, status }, store);
}

test("on a terminal the line counts the ended runs, the active runs, and the runs per second", async () => {
  const { out, written, pass } = terminal();
  const report = new WorkerReport(out, { quiet: false, eachRun: false });
  report.start(() => 12);
  expect(written.at(-1)).toContain("0 completed · 12 active · 0/s");
  pass(500);
  end(report, 1_200, "completed");
  end(report, 3, "failed");
  end(report, 1, "canceled");
  await report.end();
  expect(written.join("")).toContain("1,200 completed · 3 failed · 1 canceled · 0 active · 2,408/s");
  expect(report.endedCounts).toEqual({ completed: 1_200, failed: 3, canceled: 1 });
});

test("a quiet report draws no line", async () => {
  const { out, written } = terminal();
  const report = new WorkerReport(out, { quiet: true, eachRun: true });
  report.start(() => 1);
  end(report, 1, "completed");
  report.stepFailed(new Error("no"), { runId: "r", workflowName: "w", step: "s", attempt: 1 });
  await report.end();
  expect(written).toEqual([]);
});

test("runs that cannot be read are counted nevertheless", async () => {
  const { out, written } = terminal();
  const report = new WorkerReport(out, { quiet: false, eachRun: true });
  end(report, 2, "completed", { runsById: () => Promise.reject(new Error("the database is away")) });
  await report.end();
  expect(written.join("")).toContain("warning: 2 runs ended, but could not be read: the database is away");
  expect(report.endedCounts.completed).toBe(2);
});

test("runs that end together are read in batches, and printed in the order of their ends", async () => {
  const { out, written } = terminal();
  const report = new WorkerReport(out, { quiet: false, eachRun: true });
  const batchSizes: number[] = [];
  const record = (id: string) => ({ id, workflow: "w", status: "completed", startedAt: 0, finishedAt: 5 }) as RunRecord;
  end(report, 1_200, "completed", {
    runsById: async (ids) => {
      batchSizes.push(ids.length);
      return ids.toReversed().map(record);
    },
  });
  await report.end();
  expect(batchSizes).toEqual([500, 500, 200]);
  const printed = [...written.join("").matchAll(/w completed (\d+) {2}5ms\n/g)].map(([, index]) => Number(index));
  expect(printed).toEqual(Array.from({ length: 1_200 }, (_, index) => index));
});
