/** The report at the end: what the database has recorded against what the outside world has seen. */
import type { Verification } from "pawl";
import type { Effect } from "./ledger.js";
import { stepNames } from "./order.js";
import type { RunProgress } from "./progress.js";

export interface Account {
  readonly runs: readonly RunProgress[];
  readonly effects: readonly Effect[];
  readonly verification: Verification;
  /** The process that was killed, and the one that took over. */
  readonly killedPid: number;
  readonly secondPid: number;
}

export interface Row {
  readonly what: string;
  readonly found: number;
  readonly expected: string;
  readonly holds: boolean;
}

export function rowsOf({ runs, effects, verification, killedPid, secondPid }: Account): Row[] {
  const steps = runs.length * stepNames.length;
  const byStep = groupByKey(effects);
  const repeated = byStep.filter((times) => times.length > 1);
  const inFlight = repeated.filter((times) => wasInFlight(times, { runs, killedPid, secondPid }));
  const exactly = (what: string, found: number, wanted: number): Row => {
    return { what, found, expected: String(wanted), holds: found === wanted };
  };
  const takenOver = runs.filter(({ recovered }) => recovered).length;
  return [
    exactly("orders completed", runs.filter(({ status }) => status === "completed").length, runs.length),
    { what: "orders taken over by worker 2", found: takenOver, expected: "1 or more", holds: takenOver > 0 },
    exactly("steps recorded exactly once", recordedOnce(runs), steps),
    exactly("steps with an effect in the ledger", byStep.length, steps),
    exactly("effects in the ledger", effects.length, steps + inFlight.length),
    { what: "  again, because in flight at the kill", found: inFlight.length, expected: "allowed", holds: true },
    exactly("  again, although recorded", repeated.length - inFlight.length, 0),
    exactly("differences between log and tables", verification.differences.length, 0),
  ];
}

export function tableOf(rows: readonly Row[]): string[] {
  const line = (what: string, found: string, expected: string) =>
    `${what.padEnd(40)} ${found.padStart(7)}   ${expected.padEnd(9)}`;
  return [
    `     ${line("", "found", "expected")}`,
    ...rows.map(({ what, found, expected, holds }) => `  ${holds ? "✓" : "✗"}  ${line(what, String(found), expected)}`),
  ].map((text) => text.trimEnd());
}

function groupByKey(effects: readonly Effect[]): Effect[][] {
  const groups = new Map<string, Effect[]>();
  for (const effect of effects) groups.set(effect.key, [...(groups.get(effect.key) ?? []), effect]);
  return [...groups.values()];
}

function recordedOnce(runs: readonly RunProgress[]): number {
  return runs.flatMap((run) => stepNames.filter((step) => recordsOf(run, step).length === 1)).length;
}

const recordsOf = ({ history }: RunProgress, step: string) =>
  history.filter(({ type, node }) => type === "step.completed" && node === step);

/** Once by the killed worker, once by the other, and recorded only after the run had been taken over. */
function wasInFlight(times: readonly Effect[], account: Pick<Account, "runs" | "killedPid" | "secondPid">): boolean {
  const [first, second, third] = times;
  if (first?.pid !== account.killedPid || second?.pid !== account.secondPid || third !== undefined) return false;
  const run = account.runs.find(({ id }) => id === first.run);
  const takenOverAt = run?.history.find(({ type }) => type === "run.recovered")?.seq ?? Number.POSITIVE_INFINITY;
  return run !== undefined && recordsOf(run, first.step).every(({ seq }) => seq > takenOverAt);
}
