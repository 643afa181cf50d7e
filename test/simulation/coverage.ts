/** What a campaign has exercised. Each of the mechanisms that faults are for must have fired at least once, or the campaign proves nothing. */
import type { SlotRecord } from "../../src/store/contract/limits.js";
import type { Evidence } from "./evidence.js";
import { faultKinds } from "./kernel/faults.js";
import type { World } from "./world.js";

export type Counts = Record<string, number>;

const warned: Readonly<Record<string, RegExp>> = {
  "a worker lost its lease": /lost its lease/,
  "a run was dropped by a worker that did not own it any more": /is no longer owned by this worker/,
  "a run was replayed because its log had changed": /is replayed from there/,
  "a claim failed": /could not claim runs/,
  "a commit failed and was repeated": /commit failed, trying again/,
  "runs of a dead worker were freed": /Freed the runs of/,
};

/** What every campaign must count; the types of events and the faults come on top. */
export function countCoverage(world: World, evidence: Evidence): Counts {
  const counts: Counts = {};
  const add = (name: string, count = 1) => {
    counts[name] = (counts[name] ?? 0) + count;
  };
  for (const kind of faultKinds) add(`fault: ${kind}`, world.faults.injected.get(kind) ?? 0);
  for (const [name, pattern] of Object.entries(warned))
    for (const text of evidence.warnings) if (pattern.test(text)) add(name);
  countLimits(evidence, add);
  for (const entry of evidence.journal) {
    if (entry.kind === "fenced") add("a call was fenced");
    else if (entry.kind === "freed") add("a worker was reaped or left", entry.workerIds.length);
    else if (entry.kind === "claimed")
      for (const deliveries of entry.deliveries) if (deliveries > 1) add("a run was reclaimed");
    if (entry.kind !== "commit") continue;
    if (entry.result.kind === "conflict")
      add(entry.result.hasUnreadMessages ? "an end was refused because of a message" : "a commit was refused");
    else if (entry.isLate && entry.result.kind === "committed") add("a commit took effect late");
    else if (entry.isUnanswered && entry.result.kind === "committed") add("a commit took effect whose answer was lost");
    if (entry.result.kind === "committed" && entry.result.notParked.length > 0)
      add("a run was not parked because of a message");
  }
  for (const [, log] of evidence.logs)
    for (const { type, data, outcome } of log) {
      add(`event: ${type}`);
      if (outcome !== null && outcome !== "success") add(`outcome: ${outcome}`);
      if (type === "step.failed" && data?.includes('"retryMs"')) add("a step was retried");
      if (type === "run.paused" && data?.includes("QUARANTINED")) add("a run was quarantined");
      if (type === "run.paused" && data?.includes('"NonDeterminismError"')) add("changed code paused a run");
      if (type === "run.forked") add("a retry continued from a failed run");
      if (type === "run.start_queued") add("a start waited for the run that had its key");
      if (type === "run.start_replaced") add("a start replaced the input of a run");
    }
  for (const { error } of evidence.runs) if (error?.includes('"EXPIRED"') === true) add("a run expired");
  for (const { outcome } of evidence.tokenStarts) if (outcome === "merged") add("a start was merged into a run");
  for (const { status } of evidence.runs) add(`run: ${status}`);
  for (const { outcome } of evidence.occurrences) add(`occurrence: ${outcome}`);
  if (evidence.userRows.length > 0) add("a transaction wrote rows", evidence.userRows.length);
  for (const { end } of evidence.bodies) if (end === null) add("a body was cut off");
  for (const { outcome, command } of evidence.commands) add(`command: ${command} ${outcome}`);
  return counts;
}

function countLimits(evidence: Evidence, add: (name: string, count?: number) => void): void {
  let held: readonly SlotRecord[] = [];
  let dead: ReadonlySet<string> = new Set();
  for (const entry of evidence.journal) {
    if (entry.kind === "slots") {
      const kept = new Set(entry.slots.map(slotKey));
      for (const slot of held)
        if (slot.owner !== null && dead.has(slot.owner) && !kept.has(slotKey(slot)))
          add("a slot of a dead worker was freed");
      if (entry.slots.some(({ isWaiting }) => isWaiting)) add("a step waited for its slot");
      if (entry.slots.some(({ owner, node }) => owner === null && node === "")) add("a run held a slot until its end");
      const parked = entry.slots.filter(({ owner, node }) => owner === null && node !== "");
      if (parked.some(({ isWaiting }) => isWaiting)) add("a run was parked while its step waited for a slot");
      if (parked.some(({ isWaiting }) => !isWaiting)) add("a slot was offered to a parked run");
      held = entry.slots;
    }
    dead = entry.kind === "freed" ? new Set(entry.workerIds) : new Set();
    if (entry.kind === "woken") add("runs that waited for a lane were woken", entry.count);
    if (entry.kind === "limits" && entry.limits.some(({ override }) => override !== null))
      add("a limit was overridden");
  }
}

const slotKey = ({ runId, node, lane }: SlotRecord) => `${runId} ${node} ${lane}`;

/** What a few thousand worlds exercise only once or twice. */
const rare = "a run was replayed because its log had changed";
const seedsForRare = 10_000;

/** What a campaign of so many seeds must have exercised. */
export const requiredCoverage = (seeds: number): readonly string[] =>
  seeds < seedsForRare ? required.filter((name) => name !== rare) : required;

const required: readonly string[] = [
  ...faultKinds.map((kind) => `fault: ${kind}`),
  ...Object.keys(warned),
  "a call was fenced",
  "a run was reclaimed",
  "event: run.recovered",
  "an end was refused because of a message",
  "a commit was refused",
  "a commit took effect late",
  "a commit took effect whose answer was lost",
  "a run was not parked because of a message",
  "a step was retried",
  "a run was quarantined",
  "a body was cut off",
  "changed code paused a run",
  "a retry continued from a failed run",
  "a start waited for the run that had its key",
  "a start replaced the input of a run",
  "a run expired",
  "a start was merged into a run",
  "a slot of a dead worker was freed",
  "a step waited for its slot",
  "a run held a slot until its end",
  "a run was parked while its step waited for a slot",
  "a slot was offered to a parked run",
  "runs that waited for a lane were woken",
  "a limit was overridden",
  "a transaction wrote rows",
  "occurrence: ran",
  "command: schedule trigger done",
  "command: pause queue done",
];

export function addCounts(total: Counts, counts: Counts): void {
  for (const [name, count] of Object.entries(counts)) total[name] = (total[name] ?? 0) + count;
}
