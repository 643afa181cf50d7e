import { expect, test } from "vitest";
import { Output } from "./output.js";
import { drawRun, type RunView } from "./run-view.js";

const now = new Date(2025, 10, 16, 14, 0, 0);
const stream = { write: () => {} };
const out = new Output({
  stdout: stream,
  stderr: stream,
  json: false,
  debug: false,
  noColor: "1",
  now: () => now.getTime(),
});

const info: RunView["info"] = {
  id: "01234567-89ab-7cde-8f01-23456789abcd",
  workflow: "order",
  version: "",
  queue: "order",
  priority: 0,
  status: "waiting",
  hero: null,
  input: undefined,
  output: null,
  error: null,
  tags: [],
  idempotencyKey: null,
  schedule: null,
  gathered: null,
  parentId: null,
  createdAt: new Date(now.getTime() - 60_000),
  startedAt: null,
  finishedAt: null,
};

type Execution = RunView["executions"][number];

const execution = (step: string, more: Partial<Execution> = {}): Execution => ({
  step,
  attempt: 1,
  state: "completed",
  outcome: "success",
  scheduledFor: null,
  startedAt: new Date(now.getTime() - 50_000),
  finishedAt: new Date(now.getTime() - 49_900),
  error: null,
  ...more,
});

const failed = (step: string, message: string) =>
  execution(step, { state: "failed", outcome: "reattempted_by_exception", error: new Error(message) });

function draw(view: Partial<RunView>, all = false): string {
  const explanation = { because: "waiting", text: "It waits.", since: null, until: null } as const;
  return drawRun({ info, executions: [], nodes: [], progress: [], explanation, ...view }, out, all).join("\n");
}

test("the last error is that of a step which has not succeeded since", () => {
  const recovered = [failed("charge", "busy"), execution("charge", { attempt: 2 })];
  expect(draw({ executions: recovered })).not.toContain("last error");
  expect(draw({ executions: [failed("mail", "bounced"), ...recovered] })).toMatch(/^last error {2}Error: bounced$/m);
});

test("an outcome is shown if it says more than the state", () => {
  const executions = [
    execution("a", { outcome: "continued" }),
    execution("b", { state: "failed", outcome: "timed_out" }),
    execution("c", { state: "skipped", outcome: "skipped_by_condition" }),
  ];
  expect(draw({ executions })).toMatch(/^ {2}a {2}continued .*\n {2}b {2}timed out .*\n {2}c {2}skipped /m);
});

test("steps that have not started follow those that have", () => {
  const node = (name: string, state: "completed" | "pending") => ({ name, state });
  const nodes = [node("a", "completed"), node("b", "pending"), node("c", "pending")];
  expect(draw({ executions: [execution("a")], nodes })).toMatch(
    /^steps\n {2}a {2}completed .*\n {2}b {2}not started *\n {2}c {2}not started *$/m,
  );
  expect(draw({ nodes: nodes.slice(1) })).toMatch(/^steps\n {2}b {2}not started *\n {2}c {2}not started *$/m);
});

test("only the first 40 steps that have not started are drawn, unless all are wanted", () => {
  const nodes = Array.from({ length: 100 }, (_, index) => ({ name: `step-${index}`, state: "pending" as const }));
  const some = draw({ nodes });
  expect(some).toContain("step-39 ");
  expect(some).not.toContain("step-40 ");
  expect(some).toContain("  … 60 more not started; --all shows them");
  expect(draw({ nodes }, true)).toContain("step-99 ");
});

test("only the last 40 executions are drawn, unless all are wanted", () => {
  const executions = Array.from({ length: 100 }, (_, index) => execution(`step-${index}`));
  const some = draw({ executions });
  expect(some).toContain("  … 60 earlier; --all shows them");
  expect(some).not.toContain("step-59 ");
  expect(some).toContain("step-60 ");
  expect(draw({ executions }, true)).toContain("step-0 ");
});

test("progress shows the count, the rate and the remaining time", () => {
  const progress = [
    { node: "import", done: 1_200, total: 5_000, message: "photos", rate: 350.4, etaMs: 10_846, at: now },
    { node: "", done: 3, total: null, message: null, rate: null, etaMs: null, at: now },
  ];
  expect(draw({ progress })).toContain("progress\n  import  1200 of 5000, 350/s, 11s left, photos\n  run  3\n");
});

test("timestamps in the explanation are shortened, and its control characters are removed", () => {
  const at = new Date(now.getTime() + 2 * 86_400_000);
  const explanation = {
    because: "waiting",
    text: `It waits until ${at.toISOString()}: \u001b[2Jboo`,
    since: null,
    until: at,
  } as const;
  expect(draw({ explanation })).toContain("It waits until 18 Nov 14:00 (in 2 days):  [2Jboo");
});

test("a completed run is not explained, a canceled one shows its reason", () => {
  const ended = { because: "ended", text: "It is over.", since: null, until: null } as const;
  expect(draw({ info: { ...info, status: "completed" }, explanation: ended })).not.toContain("It is over");
  const canceled = { ...info, status: "canceled", error: new Error("ordered twice") } as const;
  expect(draw({ info: canceled, explanation: ended })).toMatch(/^canceled {2}ordered twice$/m);
});
