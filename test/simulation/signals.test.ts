/** The check of signals, on a run and its retry whose logs are written down here; the events of the retry are copied by the library. */
import { expect, test } from "vitest";
import { type NewEvent, newEvent } from "../../src/core/run/event.js";
import { createFork } from "../../src/core/run/fork.js";
import { Facts } from "./checks/facts.js";
import { checkSignals } from "./checks/signals.js";
import type { Evidence } from "./evidence.js";

const started = newEvent("run.started", {}, {});
const sent = newEvent("signal.received", {}, { name: "go" });
const waits = (node: string, timeoutMs?: number) =>
  newEvent("wait.started", { node }, { names: ["go"], mode: "any", ...(timeoutMs === undefined ? {} : { timeoutMs }) });
const receives = (node: string, signal: number) => newEvent("wait.completed", { node }, { signals: [signal] });
const timesOut = (node: string) => newEvent("wait.timed_out", { node }, {});
const losesRace = (node: string) => newEvent("wait.withdrawn", { node }, {});

const numbered = (events: readonly NewEvent[]) => events.map((event, index) => ({ ...event, seq: index + 1, at: 0 }));

/** What the check says about the run "first", and about its retry "retry", which goes on with `own`. */
function violationsOf(events: readonly NewEvent[], own: readonly NewEvent[] = []): string[] {
  const fromLog = numbered([started, ...events]);
  const fork = createFork({ fromRunId: "first", fromLog, toRunId: "retry", toLog: [], onFailure: null }).events;
  const commits = [
    ...fromLog.map((event) => ({ runId: "first", events: [event] })),
    { runId: "retry", events: fork },
    ...own.map((event) => ({ runId: "retry", events: [event] })),
  ];
  const evidence = {
    runs: [{ id: "first" }, { id: "retry" }],
    logs: new Map([
      ["first", fromLog],
      ["retry", numbered([...fork, ...own])],
    ]),
    journal: commits.map((transition, index) => ({
      ...{ kind: "commit", seq: index + 1, process: "p", result: { kind: "committed", at: 0 } },
      batch: { transitions: [{ ...transition, next: { kind: "keep" }, cursors: [] }] },
    })),
    signals: [],
    deaths: [],
  } as unknown as Evidence;
  const found: string[] = [];
  checkSignals(evidence, new Facts(evidence, new Map() as never), (invariant, run, text) => {
    found.push(`${invariant} ${run} ${text}`);
  });
  return found;
}

/** While "a" has signal 6, "b" receives signal 8 and "c" times out. Then "a" loses its race, and signal 6 is there again. */
const race = [waits("a"), waits("b"), waits("c", 9), waits("d"), sent, receives("a", 6)];
const lost = [...race, sent, receives("b", 8), timesOut("c"), losesRace("a")];

test("the signal of a wait that has lost a race was not there before, also in a retry, which does not inherit that wait's signal", () => {
  expect(violationsOf([...lost, receives("d", 6)])).toEqual([]);
  // Signal 6 has this number in the retry, too: "d" is not copied, and there is one more event at the beginning.
  expect(violationsOf(lost, [waits("e"), receives("e", 6)])).toEqual([]);
});

test("a wait that passes over a signal is noticed in the run, and in what its retry does itself", () => {
  expect(violationsOf([waits("a"), sent, sent, receives("a", 4)])).toEqual([
    "I10 first Signal 4 was consumed before signal 3 of the same name.",
  ]);
  expect(violationsOf([sent, sent], [waits("a"), receives("a", 4)])).toEqual([
    "I10 retry Signal 4 was consumed before signal 3 of the same name.",
  ]);
  expect(violationsOf([sent], [waits("a", 9), timesOut("a")])).toEqual([
    "I10 retry Wait a timed out although signal 3 was there.",
  ]);
  expect(violationsOf(lost, [waits("e"), waits("f", 9), timesOut("f")])).toHaveLength(1);
});
