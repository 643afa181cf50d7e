/**
 * I3: at most one recorded result per run and step. I4: it is one that the ledger saw. I6: a body runs again only for a
 * reason. "key": at most one effect per idempotency key is recorded as completed.
 */
import { type Evidence, isToken, type Report } from "../evidence.js";
import type { Begin, ItemDone } from "../ledger.js";
import type { LogEvent, RunRow } from "../records.js";

export function checkResults(evidence: Evidence, report: Report): void {
  const recorded = new Map<string, { token: string; run: string }[]>();
  const note = (run: RunRow, token: string) => {
    const key = evidence.begins.get(token)?.key ?? token;
    recorded.set(key, [...(recorded.get(key) ?? []), { token, run: run.id }]);
  };
  for (const [run, log] of evidence.runs()) {
    const results = new Map<string, number>();
    for (const { type, node, data, seq } of log) {
      if (type !== "step.completed" || node === null) continue;
      if (results.has(node))
        report("I3", run.id, `Step ${node} has two results, events ${results.get(node)} and ${seq}.`);
      results.set(node, seq);
      if (data.by === "operator" || !isToken(data.output)) continue;
      checkToken(evidence, run.id, node, data.output, report);
      note(run, data.output);
    }
    if (run.status === "completed") checkOutput(evidence, run, log, note, report);
  }
  for (const [key, results] of recorded) {
    const tokens = new Set(results.map(({ token }) => token));
    if (tokens.size > 1)
      report(
        "key",
        results[0]?.run ?? null,
        `The key ${key} has ${tokens.size} completed effects: ${[...tokens].join(", ")}.`,
      );
  }
}

function checkToken({ begins, ended }: Evidence, run: string, node: string, token: string, report: Report): void {
  const begin = begins.get(token);
  if (begin === undefined) return report("I4", run, `The result ${token} of step ${node} is not in the ledger.`);
  if (!ended.has(token)) report("I4", run, `The result ${token} of step ${node} comes from a body that never ended.`);
  if (begin.run !== run || begin.step !== node)
    report("I4", run, `The result ${token} of step ${node} is that of ${begin.run} ${begin.step}.`);
}

/** What the code returned is made of what is recorded. A job returns the token of its own body. */
function checkOutput(
  { begins, ended }: Evidence,
  run: RunRow,
  log: readonly LogEvent[],
  note: (run: RunRow, token: string) => void,
  report: Report,
): void {
  const output = JSON.parse(run.output ?? "null");
  if (run.workflow.startsWith("job:") && isToken(output)) {
    if (!begins.has(output) || !ended.has(output)) report("I4", run.id, `Its output ${output} is not in the ledger.`);
    if (begins.get(output)?.run !== run.parentId) report("I4", run.id, `Its output ${output} is that of another run.`);
    note(run, output);
  }
  if (!Array.isArray(output?.seen)) return;
  const recorded = new Set(log.filter(({ type }) => type === "step.completed").map(({ data }) => data.output));
  for (const seen of output.seen)
    if (isToken(seen) && !recorded.has(seen)) report("I4", run.id, `Its code has seen ${seen}, which is not recorded.`);
}

/** How long before and after it a fault can still be the reason for a second execution: leases, timeouts, reconnects. */
const aftermathMs = 70_000;

const interrupts = /^(step\.(failed|reattempted)|node\.reopened|run\.(recovered|resumed|reattempted))$/;

type Executed = Pick<Begin, "run" | "pid" | "at">;

export function checkRepeats(evidence: Evidence, report: Report): void {
  const groups = new Map<string, Begin[]>();
  for (const begin of evidence.begins.values()) add(groups, `${begin.run} ${begin.step}`, begin);
  for (const all of groups.values())
    for (const [before, again] of pairs(all))
      if (!isExplained(evidence, before, again))
        report("I6", again.run, `Step ${again.step} ran again (${before.token}, then ${again.token}) for no reason.`);
}

/** The items of resumable steps: all of them, and each again only as the item in flight of an execution that was cut short. */
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
      (pid === null || pid === before.pid) && at <= again.at + 1_000 && until >= before.at - aftermathMs,
  );

function add<One>(groups: Map<string, One[]>, key: string, one: One): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [one]);
  else group.push(one);
}

/** Each with the one before it, in the order in which they happened. */
function pairs<One extends Executed>(all: readonly One[]): (readonly [One, One])[] {
  const sorted = [...all].sort((a, b) => a.at - b.at);
  return sorted.slice(1).map((again, index) => [sorted[index] as One, again] as const);
}
