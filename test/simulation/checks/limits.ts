/**
 * I14, I23: no more slots of a lane are held at a time than its limit allows, once by the rows of the store, and once by what is executed and
 * what the code says, without these rows; and no more begin in a time than its rate allows. A body of a limited step begins only while the database
 * says that it holds a slot. At the end, all lanes are empty.
 */
import type { StepSlotRequest, StoredLimit } from "../../../src/store/contract/limits.js";
import { type Evidence, isSameFence, type Report } from "../evidence.js";
import type { JournalEntry } from "../kernel/journal.js";
import type { Facts } from "./facts.js";
import { keyedLimits, limitsOfWorkflows } from "./limit-plan.js";
import { ownerAt } from "./ownership.js";

type Slots = Extract<JournalEntry, { kind: "slots" }>["slots"];
type Rate = NonNullable<StoredLimit["rate"]>;

/** What began in a lane, in units of its rate. */
interface Begin {
  readonly at: number;
  readonly units: number;
}

export function checkLimits(evidence: Evidence, facts: Facts, report: Report): void {
  const begins = new Map<string, Begin[]>();
  const rates = new Map<string, Rate[]>();
  checkSlots(evidence, begins, rates, report);
  checkExecuted(evidence, begins, report);
  for (const [lane, list] of begins) checkRate(lane, list, rates.get(limitOf(lane)) ?? [], report);
  checkBodies(evidence, facts, report);
  checkEmpty(evidence, report);
}

const limitOf = (lane: string) => lane.slice(0, lane.indexOf("\t"));

/** What is in force: the override until it ends, otherwise the values of the code. */
class InForce {
  #limits = new Map<string, StoredLimit>();

  set(limits: readonly StoredLimit[]): void {
    this.#limits = new Map(limits.map((limit) => [limit.name, limit]));
  }

  concurrency(lane: string, at: number): number | null {
    const limit = this.#limits.get(limitOf(lane));
    if (limit === undefined) return 0;
    const { override } = limit;
    const isOverridden = override?.concurrency !== undefined && (override.until === null || override.until > at);
    return isOverridden ? (override.concurrency ?? null) : limit.concurrency;
  }
}

const slotKey = ({ runId, node, lane }: Slots[number]) => `${runId} ${node} ${lane}`;

/** Begins that the rows of the store show: runs with `node` "", and steps. */
function checkSlots(
  evidence: Evidence,
  begins: Map<string, Begin[]>,
  rates: Map<string, Rate[]>,
  report: Report,
): void {
  const inForce = new InForce();
  const unitsOf = new Map<string, number>();
  let held = new Set<string>();
  for (const entry of evidence.journal) {
    if (entry.kind === "limits") {
      inForce.set(entry.limits);
      for (const { name, rate, override } of entry.limits)
        for (const value of [rate, override?.rate])
          if (value !== null && value !== undefined) rates.set(name, [...(rates.get(name) ?? []), value]);
    } else if (entry.kind === "asked") for (const step of entry.steps) unitsOf.set(stepKey(step), step.units);
    if (entry.kind !== "slots") continue;
    const before = held;
    const slots = entry.slots.filter(({ isWaiting }) => !isWaiting);
    held = new Set(slots.map(slotKey));
    for (const slot of slots) {
      if (before.has(slotKey(slot))) continue;
      const { lane, runId, node } = slot;
      const count = slots.filter((other) => other.lane === lane).length;
      const most = inForce.concurrency(lane, entry.at);
      if (most !== null && count > most)
        report(
          "I14",
          runId,
          `Lane ${lane.trim()} has ${count} slots in use since entry ${entry.seq}; its limit is ${most}.`,
        );
      // A slot that is offered to a run is held, but nothing begins before the run takes it.
      if (node !== "" && slot.owner !== null)
        addBegin(begins, lane, { at: entry.at, units: unitsOf.get(stepKey(slot)) ?? 1 });
    }
  }
}

const stepKey = ({ runId, node, lane }: Pick<StepSlotRequest, "runId" | "node" | "lane">) => `${runId} ${node} ${lane}`;

function addBegin(begins: Map<string, Begin[]>, lane: string, begin: Begin): void {
  const list = begins.get(lane);
  if (list === undefined) begins.set(lane, [begin]);
  else list.push(begin);
}

/** Which runs are executed, and in which lanes they must be, without a look at the slots. */
function checkExecuted(evidence: Evidence, begins: Map<string, Begin[]>, report: Report): void {
  const lanesOf = new Map(evidence.runs.map((run) => [run.id, lanesOfRun(run)]));
  const inForce = new InForce();
  const executed = new Map<string, Set<string>>();
  const ownedBy = new Map<string, string>();
  const release = (run: string, isEnded: boolean) => {
    ownedBy.delete(run);
    for (const lane of lanesOf.get(run) ?? []) if (isEnded || !isHeldOpen(lane)) executed.get(lane)?.delete(run);
  };
  for (const entry of evidence.journal) {
    if (entry.kind === "limits") inForce.set(entry.limits);
    else if (entry.kind === "freed" || entry.kind === "registered") {
      const workers: readonly string[] = entry.kind === "freed" ? entry.workerIds : [entry.fence.workerId];
      for (const [run, worker] of [...ownedBy]) if (workers.includes(worker)) release(run, false);
    } else if (entry.kind === "claimed") {
      for (const run of entry.runIds) {
        ownedBy.set(run, entry.fence.workerId);
        for (const lane of lanesOf.get(run) ?? []) {
          let runs = executed.get(lane);
          if (runs === undefined) executed.set(lane, (runs = new Set()));
          if (!runs.has(run)) addBegin(begins, lane, { at: entry.at, units: 1 });
          const isMore = !runs.has(run);
          runs.add(run);
          const most = inForce.concurrency(lane, entry.at);
          if (isMore && most !== null && runs.size > most)
            report(
              "I14",
              run,
              `${runs.size} runs of lane ${lane.trim()} were executed at a time; its limit is ${most}.`,
            );
        }
      }
    } else if (entry.kind === "commit" && entry.result.kind === "committed") {
      for (const { runId, next } of entry.batch.transitions) {
        const isParked = next.kind === "park" && !entry.result.notParked.includes(runId) && next.keepsDueTime !== true;
        if (isParked || next.kind === "finish") release(runId, next.kind === "finish");
      }
    }
  }
}

const isHeldOpen = (lane: string) => limitOf(lane) === "customers";

function lanesOfRun({ workflow, input }: { readonly workflow: string; readonly input: string }): readonly string[] {
  const names = (limitsOfWorkflows as Readonly<Record<string, readonly string[]>>)[workflow] ?? [];
  if (names.length === 0) return [];
  const { tenant } = JSON.parse(input) as { readonly tenant?: string };
  return names.map((name) => `${name}\t${keyedLimits.has(name) ? tenant : ""}`);
}

function checkRate(lane: string, begins: readonly Begin[], rates: readonly Rate[], report: Report): void {
  const [first] = rates;
  if (first === undefined) return;
  const perMs = Math.min(...rates.map((rate) => rate.perMs));
  const most =
    Math.max(...rates.map(({ limit, burst }) => limit + burst)) + Math.max(...begins.map(({ units }) => units));
  let sum = 0;
  let from = 0;
  for (const { at, units } of begins) {
    sum += units;
    for (; (begins[from] as Begin).at <= at - perMs; from += 1) sum -= (begins[from] as Begin).units;
    if (sum > most)
      return report("I23", null, `${sum} units of lane ${lane.trim()} began within ${perMs} ms; at most ${most} may.`);
  }
}

/** A body whose process has lost its run may be under way without a slot; no other. */
function checkBodies(evidence: Evidence, facts: Facts, report: Report): void {
  const snapshots = evidence.journal.filter((entry) => entry.kind === "slots");
  for (const { run, step, nth, lane, fence, begunAfter } of evidence.bodies) {
    if (lane === null || fence === null || !isSameFence(fence, ownerAt(facts.ownership, run, begunAfter))) continue;
    const slots = snapshots.findLast(({ seq }) => seq <= begunAfter)?.slots ?? [];
    const hasSlot = slots.some(
      (slot) =>
        slot.runId === run &&
        slot.lane === lane &&
        !slot.isWaiting &&
        slot.owner === fence.workerId &&
        slot.node.slice(slot.node.indexOf(" ") + 1) === step,
    );
    if (!hasSlot) report("I14", run, `Step ${step} began (${nth}) without a slot of ${lane.trim()}.`);
  }
}

function checkEmpty(evidence: Evidence, report: Report): void {
  if (evidence.stuck !== null) return;
  for (const { runId, node, lane } of evidence.slots)
    report("I14", runId, `It still has a slot of ${lane.trim()}${node === "" ? "" : ` for step ${node}`}.`);
  for (const { id, blockedOn } of evidence.classes)
    report("I14", null, `Class ${id} is left over${blockedOn === null ? "" : `, blocked on ${blockedOn.trim()}`}.`);
  for (const { id, waitingSteps, inUse } of evidence.lanes)
    if (waitingSteps + inUse > 0) report("I14", null, `Lane ${id.trim()} is not empty.`);
}
