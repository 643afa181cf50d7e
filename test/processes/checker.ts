/**
 * An independent judge of a database after faults: it reads the tables with its own SQL and shares no code with the
 * library. It returns a list of problems as sentences, which is empty when everything is right.
 */
import type { RawSql, Row } from "../support/raw-sql.js";

interface LoggedEvent {
  readonly seq: number;
  readonly type: string;
  readonly node: string | null;
  readonly data: string | null;
  readonly at: number;
}

export interface Findings {
  readonly problems: string[];
  /** Per run and step: the value that was recorded as its result. */
  readonly results: ReadonlyMap<string, unknown>;
  readonly events: number;
}

/** For databases in which every run should have completed. */
export async function checkDatabase(sql: RawSql, expected: { readonly runIds: readonly string[] }): Promise<Findings> {
  const runs = await sql.query("SELECT id, status, started_at, finished_at, output FROM pawl_runs");
  const rows = await sql.query("SELECT run_id, seq, span, type, node, data, at FROM pawl_events ORDER BY run_id, seq");
  const findings: Findings & { events: number; results: Map<string, unknown> } = {
    problems: [],
    results: new Map(),
    events: 0,
  };
  const { problems } = findings;

  const found = new Set(runs.map((run) => String(run.id)));
  for (const id of expected.runIds) if (!found.has(id)) problems.push(`Run ${id} was acknowledged and is not there.`);
  if (found.size !== expected.runIds.length)
    problems.push(`There are ${found.size} runs, not ${expected.runIds.length}.`);

  const logs = groupByRun(rows);
  for (const id of logs.keys())
    if (!found.has(id)) problems.push(`There are events of run ${id}, which does not exist.`);
  for (const run of runs) {
    const log = unpack(String(run.id), logs.get(String(run.id)) ?? [], problems);
    findings.events += log.length;
    judge(run, log, findings);
  }
  await checkLeftovers(sql, problems);
  return findings;
}

function groupByRun(rows: readonly Row[]): Map<string, Row[]> {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const id = String(row.run_id);
    const group = groups.get(id);
    if (group === undefined) groups.set(id, [row]);
    else group.push(row);
  }
  return groups;
}

/** The rows as events; checks that they are numbered 1, 2, 3… without a gap or an overlap. */
function unpack(runId: string, rows: readonly Row[], problems: string[]): LoggedEvent[] {
  const log: LoggedEvent[] = [];
  let next = 1;
  for (const row of rows) {
    const [seq, span] = [Number(row.seq), Number(row.span)];
    if (seq !== next) problems.push(`Run ${runId}: after event ${next - 1} comes event ${seq}.`);
    const events = eventsOf(row);
    if (events.length !== span)
      problems.push(`Run ${runId}: the row of event ${seq} spans ${span} and holds ${events.length}.`);
    log.push(...events);
    next = seq + span;
  }
  return log;
}

function eventsOf(row: Row): LoggedEvent[] {
  const seq = Number(row.seq);
  const at = Number(row.at);
  if (row.type !== "batch") {
    return [{ seq, type: String(row.type), node: row.node as string | null, data: row.data as string | null, at }];
  }
  const tuples = JSON.parse(String(row.data)) as [string, string | null, number | null, string | null, string | null][];
  return tuples.map(([type, node, , , data], index) => ({ seq: seq + index, type, node, data, at }));
}

function judge(
  run: Row,
  log: readonly LoggedEvent[],
  { problems, results }: Findings & { results: Map<string, unknown> },
) {
  const id = String(run.id);
  if (run.status !== "completed") problems.push(`Run ${id} is ${run.status}.`);
  // The end of a run is recorded in its row, and only there.
  if (log.some(({ type }) => /^run\.(completed|failed|canceled)$/.test(type)))
    problems.push(`Run ${id} has a second end, in its log.`);
  if (log.some(({ at }) => at > Number(run.finished_at))) problems.push(`Run ${id}: something happened after its end.`);
  if (run.started_at === null || run.finished_at === null) problems.push(`Run ${id} lacks its start or its end.`);
  if (log.filter(({ type }) => type === "run.started").length !== 1) problems.push(`Run ${id} did not start once.`);

  const recorded: unknown[] = [];
  for (const { type, node, data } of log) {
    if (type !== "step.completed") continue;
    const key = `${id} ${node}`;
    if (results.has(key)) problems.push(`Run ${id}: step ${node} has two results.`);
    const { output } = JSON.parse(String(data)) as { output: unknown };
    results.set(key, output);
    recorded.push(output);
  }
  // The workflow of these tests returns what its steps returned.
  if (String(run.output) !== JSON.stringify(recorded))
    problems.push(`Run ${id} returned ${run.output}, its steps ${JSON.stringify(recorded)}.`);
}

async function checkLeftovers(sql: RawSql, problems: string[]): Promise<void> {
  for (const table of ["pawl_tasks", "pawl_inbox"]) {
    const [row] = await sql.query(`SELECT count(*) AS n FROM ${table}`);
    if (Number(row?.n) !== 0) problems.push(`${row?.n} rows are left in ${table}.`);
  }
}
