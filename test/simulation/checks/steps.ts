/**
 * I3: one recorded result for each step. I4: an execution has returned it. I5, I20: no body begins after it was recorded, except in a process that
 * does not own the run any more. I6: a body runs again only for a reason. I13, I21: rows of transactional steps are there exactly if their records are.
 */

import type { Evidence, ReadEvent, Report } from "../evidence.js";
import type { BodyEntry } from "../ledger.js";
import type { Facts } from "./facts.js";

/** After these, calls are made again. */
const startsOver = (event: ReadEvent) =>
  event.type === "run.moved" ||
  event.type === "node.reopened" ||
  event.type === "dag.imported" ||
  ((event.type === "run.reattempted" || event.type === "step.reattempted") && event.parsed.rewind === true);

export function checkSteps(evidence: Evidence, facts: Facts, report: Report): void {
  const bodies = new Map<string, BodyEntry[]>();
  for (const body of evidence.bodies) {
    const key = `${body.run} ${body.step}`;
    const group = bodies.get(key);
    if (group === undefined) bodies.set(key, [body]);
    else group.push(body);
  }
  for (const run of evidence.runs) {
    const completed = new Map<string, ReadEvent>();
    for (const event of facts.log(run.id)) {
      if (startsOver(event)) completed.clear();
      if ((event.type !== "step.completed" && event.type !== "step.skipped") || event.node === null) continue;
      if (completed.has(event.node))
        report(
          "I3",
          run.id,
          `Step ${event.node} has two results, events ${completed.get(event.node)?.seq} and ${event.seq}.`,
        );
      completed.set(event.node, event);
      if (event.type === "step.completed") checkOrigin(event, run.id, bodies, facts, report);
    }
  }
  for (const group of bodies.values()) checkBegins(group, facts, report);
  checkUserRows(evidence, facts, report);
}

/** The tokens of bodies have this form; other results are not compared. */
const isToken = (value: unknown): value is string => typeof value === "string" && /#\d+$/.test(value);

function checkOrigin(
  event: ReadEvent,
  run: string,
  bodies: ReadonlyMap<string, readonly BodyEntry[]>,
  facts: Facts,
  report: Report,
): void {
  const { output } = event.parsed;
  if (!isToken(output) || event.parsed.by === "operator") return;
  // The result of a step may be that of a step within it, and the result of a node that of the run that executed its job.
  const step = output.replace(/#\d+$/, "");
  const lineage = facts.isInherited(run, event.seq) ? facts.ancestorsOf(run) : [run, ...facts.ancestorsOf(run)];
  const owners =
    step === event.node ? lineage : lineage.flatMap((owner) => [owner, ...facts.attemptRuns(owner, event.node)]);
  const body = owners.flatMap((owner) => bodies.get(`${owner} ${step}`) ?? []).find(({ token }) => token === output);
  if (body === undefined || body.end !== "value")
    report("I4", run, `Step ${event.node} has the result ${output}, which no execution returned.`);
  else if (body.begunAfter >= facts.committedAt(run, event.seq))
    report("I4", run, `The result of step ${event.node} was recorded before its execution began.`);
}

/** Ends of an execution after which there may be another one. */
const failures = new Set(["step.failed", "step.reattempted", "step.skipped", "step.canceled"]);

function checkBegins(bodies: readonly BodyEntry[], facts: Facts, report: Report): void {
  const { run, step } = bodies[0] as BodyEntry;
  const log = facts.log(run).filter(({ node }) => node === step);
  const isUndo = facts.isUndo(step);
  const recorded = log.filter(({ type, attempt }) => failures.has(type) && attempt !== null);
  const completion = isUndo ? undefined : log.find(({ type }) => type === "step.completed");
  const completedAt = completion === undefined ? Number.POSITIVE_INFINITY : facts.committedAt(run, completion.seq);
  const wasLate = completion !== undefined && facts.wasLate(run, completion.seq);
  // Only a transaction is executed again because its commit has failed; what it writes then is refused.
  const isExempt = wasLate && facts.isTransactional(step);
  const [first = completedAt] = bodies.map(({ begunAfter }) => begunAfter);
  for (const body of bodies) {
    if (
      body.begunAfter >= completedAt &&
      facts.isOwner(run, body.fence, body.begunAfter) &&
      !facts.canStartOver(run) &&
      !isExempt &&
      // The record took effect when the turn that executes the step again had already read the log.
      !(wasLate && facts.wasClaimedBetween(run, first, completedAt))
    )
      report("I5", run, `Step ${step} began (${body.nth}) in ${body.process} after its result was recorded.`);
  }
  const [retried] = facts.ancestorsOf(run);
  if (retried !== undefined && /^[st]\d+$/.test(step) && !facts.canStartOver(retried)) {
    const before = facts.log(retried);
    const isCompleted = before.some(({ type, node }) => type === "step.completed" && node === step);
    if (isCompleted && !before.some(({ node }) => node === `${step}#compensate`))
      report(
        "I20",
        run,
        `Step ${step} was executed again; the run that it retries has its result, and did not undo it.`,
      );
  }
  const repeated = facts.countRepeated(bodies);
  if (!isUndo && !isExempt && repeated > recorded.length && !facts.canStartOver(run))
    report(
      "I6",
      run,
      `Step ${step} was executed ${bodies.length} times; ${repeated} executions were repeated without an interruption, and ${recorded.length} have failed.`,
    );
}

function checkUserRows(evidence: Evidence, facts: Facts, report: Report): void {
  const rows = new Map<string, string[]>();
  for (const { run, step, token } of evidence.userRows)
    rows.set(`${run} ${step}`, [...(rows.get(`${run} ${step}`) ?? []), token]);
  for (const { id } of evidence.runs) {
    for (const event of facts.log(id)) {
      if (event.type !== "step.completed" || !facts.isTransactional(event.node) || event.parsed.by === "operator")
        continue;
      // The run that it retries has written the row.
      if (facts.isInherited(id, event.seq)) continue;
      const written = rows.get(`${id} ${event.node}`) ?? [];
      if (written.length !== 1 || written[0] !== event.parsed.output)
        report(
          "I13",
          id,
          `Transactional step ${event.node} has the result ${event.parsed.output}, and wrote ${written.join() || "nothing"}.`,
        );
      rows.delete(`${id} ${event.node}`);
    }
  }
  for (const [key, tokens] of rows)
    report(
      "I13",
      key.split(" ")[0] as string,
      `Rows of step ${key.split(" ")[1]} exist without its record: ${tokens.join()}.`,
    );
}
