/** Judges limits from outside: by the history of their tables and a ledger of bodies. It shares no code with the library. */
import { existsSync, readFileSync } from "node:fs";
import type { RawSql, Row } from "../../support/raw-sql.js";
import { isSame, LimitFold, type Owner, type RunState, type StepHold, type Turn } from "./limit-fold.js";
import { type HistoryEntry, readHistory } from "./limit-history.js";
import { Rates, takesSlot } from "./limit-rates.js";
import type { NeededLane } from "./limit-rules.js";

/** A line of the ledger: a body began. */
export interface Body {
  readonly run: string;
  readonly body: string;
  readonly pid: number;
  readonly at: number;
}

export interface LimitEvidence {
  readonly history: readonly HistoryEntry[];
  readonly runs: readonly Row[];
  readonly tasks: readonly Row[];
  readonly slots: readonly Row[];
  readonly classes: readonly Row[];
  readonly bodies: readonly Body[];
  /** The ids of the runs whose start was acknowledged. */
  readonly started: readonly string[];
  /** The lanes in which a run needs a slot. */
  lanesOfRun(workflow: string, input: string): readonly NeededLane[];
  /** The lane in which a body needs a slot; null if it needs none. */
  laneOfBody(workflow: string, body: string, input: string): string | null;
}

export interface LimitJudgement {
  readonly violations: readonly string[];
  readonly admissions: number;
  /** How often a slot was taken in the last free place of its lane: without any, the limits were never put to the test. */
  readonly filledLanes: number;
  /** The most admissions of other classes between two of one class, which could have had its next at once. */
  readonly longestWait: number;
  /** The same, of one other class alone; with perfect turns it is 1. */
  readonly mostPerOther: number;
  /** The fullest window of any rate, as a part of what it may have. */
  readonly fullestWindow: number;
}

export async function readLimitEvidence(
  sql: RawSql,
  rest: { readonly bodiesFile: string } & Pick<LimitEvidence, "started" | "lanesOfRun" | "laneOfBody">,
): Promise<LimitEvidence> {
  const { bodiesFile } = rest;
  const lines = existsSync(bodiesFile) ? readFileSync(bodiesFile, "utf8").split("\n").slice(0, -1) : [];
  return {
    ...rest,
    history: await readHistory(sql),
    runs: await sql.query("SELECT id, workflow, input, status FROM pawl_runs"),
    tasks: await sql.query("SELECT run_id FROM pawl_tasks"),
    slots: await sql.query("SELECT run_id, lane FROM pawl_slots"),
    classes: await sql.query("SELECT id FROM pawl_classes"),
    bodies: lines.map((line) => JSON.parse(line) as Body),
  };
}

/**
 * How many admissions of others a class may have to watch while nothing keeps it from its own. Classes that a stopped process has
 * locked are passed over until its session ends, so this is not the bound of fairness but that of starvation.
 */
const maxBypassed = 2_000;

export function judgeLimits(evidence: LimitEvidence): LimitJudgement {
  const violations: string[] = [];
  const fold = new LimitFold();
  const pairing = new Pairing(evidence, violations);
  const waits = new Waits(fold, violations);
  const rates = new Rates(violations);
  let filledLanes = 0;
  for (const entry of evidence.history) {
    waits.before(entry);
    pairing.before(entry, fold);
    fold.apply(entry);
    pairing.after(entry, fold);
    rates.after(entry, fold);
    if (!takesSlot(entry)) continue;
    const lane = entry.lane as string;
    if (entry.owner !== null && fold.isDead({ owner: entry.owner, epoch: entry.epoch as number }))
      violations.push(`${entry.seq}: ${entry.owner} takes a slot for run ${entry.id}, and counts as dead.`);
    const { most: concurrency } = fold.limitOf(lane).concurrency(entry.value as number);
    const inUse = Math.max(fold.inUse(lane), entry.inUse ?? 0);
    if (inUse === concurrency) filledLanes += 1;
    if (inUse > concurrency)
      violations.push(
        `${entry.seq}: run ${entry.id} is number ${inUse} in ${show(lane)}, which has ${concurrency} slots.`,
      );
  }
  pairing.end(fold);
  checkEnd(evidence, fold, violations);
  checkBodies(evidence, fold, violations);
  const { longestWait, mostPerOther } = waits;
  return {
    violations,
    admissions: fold.turns.length,
    filledLanes,
    longestWait,
    mostPerOther,
    fullestWindow: rates.fullestWindow,
  };
}

const show = (lane: string) => lane.replace("\t", ":");

/**
 * A run that a worker owns has exactly the slots that it needs, of this worker in this epoch. Any other run has none but those that
 * it holds from its first execution to its end, which belong to no worker. Within a transaction this does not hold, so it must hold
 * between two changes of the task. (Slots of steps are given back by transactions of their own: the bodies say whether they are held
 * long enough, and the end whether they are given back.)
 */
class Pairing {
  readonly #lanesOf = new Map<string, readonly NeededLane[]>();
  readonly #violations: string[];
  /** Runs whose slots do not fit their task at this point of the history, and whether the task has changed meanwhile. */
  readonly #unfit = new Map<string, boolean>();

  constructor({ runs, lanesOfRun }: LimitEvidence, violations: string[]) {
    for (const { id, workflow, input } of runs)
      this.#lanesOf.set(String(id), lanesOfRun(String(workflow), String(input)));
    this.#violations = violations;
  }

  before(entry: HistoryEntry, fold: LimitFold): void {
    if (!isOfTask(entry) || this.#unfit.get(entry.id) !== true) return;
    this.#violations.push(`${entry.seq}: ${this.#describe(entry.id, fold.run(entry.id))}`);
    this.#unfit.set(entry.id, false);
  }

  after(entry: HistoryEntry, fold: LimitFold): void {
    if (!isOfTask(entry) && !entry.what.startsWith("slot_")) return;
    if (this.#fits(entry.id, fold.run(entry.id))) this.#unfit.delete(entry.id);
    else this.#unfit.set(entry.id, (this.#unfit.get(entry.id) ?? false) || isOfTask(entry));
  }

  end(fold: LimitFold): void {
    for (const id of this.#unfit.keys()) this.#violations.push(`At the end: ${this.#describe(id, fold.run(id))}`);
  }

  #fits(id: string, { owner, hasBegun, hasTask, slots }: RunState): boolean {
    const needed = (this.#lanesOf.get(id) ?? []).filter(({ isHeldOpen }) =>
      isHeldOpen ? hasBegun && hasTask : owner !== null,
    );
    const ofRun = [...slots.values()].filter(({ node }) => node === "");
    const isHeld = ({ lane, isHeldOpen }: NeededLane) => {
      const slot = ofRun.find((one) => one.lane === lane);
      return slot !== undefined && isSame(slot.owner, isHeldOpen ? null : owner);
    };
    return ofRun.length === needed.length && needed.every(isHeld);
  }

  #describe(id: string, { owner, hasTask, slots }: RunState): string {
    const of = (one: Owner | null) => (one === null ? "no worker" : `${one.owner} in epoch ${one.epoch}`);
    const held = [...slots.values()].map((slot) => `${show(slot.lane)}${slot.node} of ${of(slot.owner)}`).join(", ");
    const needed = (this.#lanesOf.get(id) ?? []).map(({ lane }) => show(lane)).join(", ");
    const state = hasTask ? `is owned by ${of(owner)}` : "has ended";
    return `run ${id} ${state} and has ${held || "no slot"}; while it is executed it needs ${needed}.`;
  }
}

const isOfTask = ({ what }: HistoryEntry) => what.startsWith("task_");

/** How long classes wait, counted in admissions of others, while all their lanes have a free slot. */
class Waits {
  readonly #fold: LimitFold;
  readonly #violations: string[];
  /** Of each class that could be admitted: the admissions of each other class since it could be. */
  readonly #bypassed = new Map<string, Map<string, number>>();
  /** Slots of runs that have their owner already, but not their slots: both come with the same transaction. */
  readonly #expected = new Map<string, Set<string>>();
  longestWait = 0;
  mostPerOther = 0;

  constructor(fold: LimitFold, violations: string[]) {
    this.#fold = fold;
    this.#violations = violations;
  }

  before({ what, id: run, lane, oldRoute, owner, seq, at }: HistoryEntry): void {
    if (what === "slot_taken") this.#expected.get(lane as string)?.delete(run);
    if (what !== "task_changed" || owner === null || oldRoute === null) return;
    const admittedLanes = this.#fold.lanesOfClass.get(oldRoute);
    if (admittedLanes === undefined) return;
    for (const [id] of this.#fold.waiting) {
      const lanes = this.#fold.lanesOfClass.get(id);
      if (lanes === undefined) continue;
      if (id === oldRoute || !lanes.every((one) => this.#hasRoom(one, at))) {
        this.#bypassed.delete(id);
        continue;
      }
      const others = this.#bypassed.get(id) ?? new Map<string, number>();
      others.set(oldRoute, (others.get(oldRoute) ?? 0) + 1);
      this.#bypassed.set(id, others);
      const total = [...others.values()].reduce((sum, n) => sum + n, 0);
      if (total === maxBypassed) this.#violations.push(`${seq}: the class ${JSON.stringify(id)} starves.`);
      this.longestWait = Math.max(this.longestWait, total);
      this.mostPerOther = Math.max(this.mostPerOther, others.get(oldRoute) as number);
    }
    for (const id of this.#bypassed.keys()) if (!this.#fold.waiting.has(id)) this.#bypassed.delete(id);
    for (const one of admittedLanes) this.#expected.set(one, (this.#expected.get(one) ?? new Set()).add(run));
  }

  #hasRoom(lane: string, at: number): boolean {
    const limit = this.#fold.limitOf(lane);
    // When a rate has room is not in the history, and steps come before runs.
    const isOther = limit.rates(at).some((rate) => rate !== null) || (this.#fold.waitingSteps.get(lane)?.size ?? 0) > 0;
    return !isOther && this.#fold.inUse(lane) + (this.#expected.get(lane)?.size ?? 0) < limit.concurrency(at).least;
  }
}

/** Everything has ended, nothing is left, and what the history says of the slots is what the table has. */
function checkEnd(
  { tasks, slots, classes, runs, started }: LimitEvidence,
  fold: LimitFold,
  violations: string[],
): void {
  for (const { run_id: id } of tasks) violations.push(`Run ${id} has not ended.`);
  for (const { run_id: id, lane } of slots)
    violations.push(`Run ${id} has left its slot of ${show(String(lane))} behind.`);
  for (const { id } of classes) violations.push(`The class ${JSON.stringify(id)} is left over.`);
  const inTable = new Set(slots.map(({ run_id: id, lane }) => `${id} ${lane}`));
  const inHistory = [...fold.runs].flatMap(([id, run]) => [...run.slots.values()].map(({ lane }) => `${id} ${lane}`));
  if (inHistory.length !== inTable.size || inHistory.some((slot) => !inTable.has(slot)))
    violations.push(`The history has ${inHistory.length} slots at its end, and the table ${inTable.size}.`);
  const statusOf = new Map(runs.map(({ id, status }) => [String(id), String(status)]));
  for (const id of started) if (!statusOf.has(id)) violations.push(`Run ${id} is lost.`);
  for (const [id, status] of statusOf)
    if (!["completed", "failed", "canceled"].includes(status)) violations.push(`Run ${id} is ${status}.`);
}

/**
 * A body begins only while its worker owns the run, and so while the run has its slots; and if its step has a limit, while the step
 * holds its slot. A worker that counted as dead may still begin one. All processes and the database have the same clock, in
 * milliseconds.
 */
function checkBodies(evidence: LimitEvidence, { turns, stepHolds, pids }: LimitFold, violations: string[]): void {
  const { bodies, runs, laneOfBody } = evidence;
  const turnsOf = byRun(turns);
  const holdsOf = byRun(stepHolds);
  const rowOf = new Map(runs.map((row) => [String(row.id), row]));
  const executed = new Set<string>();
  for (const { run, body, pid, at } of bodies) {
    executed.add(run);
    const allows = ({ worker, from, until, wasTaken }: Turn) =>
      pids.get(worker) === pid && from <= at + clockMs && (wasTaken || at <= until + clockMs);
    if (!(turnsOf.get(run) ?? []).some(allows))
      violations.push(`Process ${pid} began the body ${body} of run ${run} at ${at}, and did not own it.`);
    const row = rowOf.get(run);
    const lane = row === undefined ? null : laneOfBody(String(row.workflow), body, String(row.input));
    const isOfBody = (hold: StepHold) => hold.lane === lane && hold.node.endsWith(` ${body}`);
    if (lane !== null && !(holdsOf.get(run) ?? []).some((hold) => isOfBody(hold) && allows(hold)))
      violations.push(`Process ${pid} began the body ${body} of run ${run} at ${at} without a slot of ${show(lane)}.`);
  }
  for (const { id, workflow, status } of runs)
    if (status === "completed" && !executed.has(String(id)))
      violations.push(`Run ${id} (${workflow}) is completed and was never executed.`);
}

function byRun<One extends Turn>(all: readonly One[]): ReadonlyMap<string, readonly One[]> {
  const grouped = new Map<string, One[]>();
  for (const one of all) grouped.set(one.runId, [...(grouped.get(one.runId) ?? []), one]);
  return grouped;
}

const clockMs = 2;
