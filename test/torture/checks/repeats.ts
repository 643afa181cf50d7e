/**
 * I5: no body starts after its step was recorded, except in a process that a fault has cut off. I6: a body runs again
 * only for a reason; a step with `onCrash: "pause"` only when an operator has resumed it.
 */
import type { Evidence, Report } from "../evidence.js";
import type { Begin, ItemDone } from "../ledger.js";
import type { LogEvent } from "../records.js";

/**
 * How long before and after a fault the fault can be the reason for a second execution: leases, timeouts, reconnects.
 */
const faultEffectMs = 70_000;

const interrupts = /^(step\.(failed|reattempted)|node\.reopened|run\.(recovered|resumed|reattempted))$/;

type Executed = Pick<Begin, "run" | "pid" | "at">;

export function checkRepeats(evidence: Evidence, report: Report): void {
  const groups = new Map<string, Begin[]>();
  for (const begin of evidence.begins.values()) add(groups, `${begin.run} ${begin.step}`, begin);
  for (const all of groups.values()) checkLateBegins(evidence, all, report);
  for (const all of groups.values())
    if (evidence.records.runs.get(all[0]?.run ?? "")?.workflow === "careful") checkAtMostOnce(evidence, all, report);
  for (const all of groups.values())
    for (const [before, again] of pairs(all))
      if (!isExplained(evidence, before, again))
        report("I6", again.run, `Step ${again.step} ran again (${before.token}, then ${again.token}) for no reason.`);
}

/** For this long, a process that was cut off may not know that others have taken over. */
const cutOffGraceMs = 10_000;

function checkLateBegins(evidence: Evidence, all: readonly Begin[], report: Report): void {
  for (const { run, step, token, pid, at } of all) {
    const isRecord = (one: LogEvent) => one.type === "step.completed" && one.node === step;
    const recorded = evidence.logOf(run).find(isRecord);
    if (recorded === undefined || recorded.data.output === token || at <= recorded.at + clockSlackMs) continue;
    const wasCutOff = evidence.faults.some(
      (fault) => (fault.pid === null || fault.pid === pid) && fault.at <= at && fault.until + cutOffGraceMs >= at,
    );
    if (!wasCutOff)
      report("I5", run, `Step ${step} began (${token}) ${at - recorded.at} ms after its result was recorded.`);
  }
}

/** The ledger uses the clock of the processes, the log that of the database. */
const clockSlackMs = 20;

function checkAtMostOnce(evidence: Evidence, all: readonly Begin[], report: Report): void {
  for (const [before, again] of pairs(all.filter(({ step }) => step === "once"))) {
    const isResumed = ({ type, at }: LogEvent) =>
      type === "run.resumed" && at >= before.at - clockSlackMs && at <= again.at + clockSlackMs;
    if (!evidence.logOf(again.run).some(isResumed))
      report("I6", again.run, `Step once ran twice (${before.token}, ${again.token}), and no operator has said so.`);
  }
}

/**
 * The items of resumable steps: all of them were done, and an item was repeated only when its execution was cut short.
 */
export function checkItems(evidence: Evidence, report: Report): void {
  const done = new Map<string, ItemDone[]>();
  for (const one of evidence.items) add(done, `${one.run} ${one.item}`, one);
  for (const all of done.values())
    for (const [before, again] of pairs(all))
      if (!isExplained(evidence, before, again))
        report("I6", again.run, `Item ${again.item} was done again for no reason.`);
  for (const [run, log] of evidence.runs()) {
    const wasSwept = log.some(
      (one) => one.type === "step.completed" && one.node === "sweep" && one.data.by !== "operator",
    );
    if (run.workflow !== "Sweep" || !wasSwept) continue;
    const count: number = JSON.parse(run.input).items;
    const missing = Array.from({ length: count }, (_, item) => item).filter((item) => !done.has(`${run.id} ${item}`));
    if (missing.length > 0) report("I4", run.id, `Items ${missing.join(", ")} of ${count} were never done.`);
  }
}

/** Either the log says why the body ran again, or a fault hit the process in which it ran before. */
function isExplained(evidence: Evidence, before: Executed, again: Executed): boolean {
  const isReason = ({ type, at }: LogEvent) => interrupts.test(type) && at >= before.at - 5 && at <= again.at + 5;
  return evidence.logOf(again.run).some(isReason) || wasHit(evidence, before, again);
}

const wasHit = ({ faults }: Evidence, before: Executed, again: Executed): boolean =>
  faults.some(
    ({ pid, at, until }) =>
      (pid === null || pid === before.pid) && at <= again.at + 1_000 && until >= before.at - faultEffectMs,
  );

function add<One>(groups: Map<string, One[]>, key: string, one: One): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [one]);
  else group.push(one);
}

/** Each execution with the previous one, in the order in which they happened. */
function pairs<One extends Executed>(all: readonly One[]): (readonly [One, One])[] {
  const sorted = [...all].sort((a, b) => a.at - b.at);
  return sorted.slice(1).map((again, index) => [sorted[index] as One, again] as const);
}
