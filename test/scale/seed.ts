/**
 * Fills the tables with runs that were never executed, by SQL. The rows are like those that the engine writes: `pawl.verify()`
 * finds nothing wrong with them (seed.test.ts). Runs are numbered from the newest, which is 1, so that a table can be
 * extended by older runs: the newest runs stay the same, and so should the cost of every question.
 *
 * Of every 11 runs, 10 have ended: 97 % completed, 1.5 % failed, 1.5 % canceled. Of the open ones 5 % are owned by a worker,
 * 5 % paused because of an error, 15 % due, 5 % planned for later, 35 % sleep and 35 % wait for a signal.
 */
import { fingerprintOf } from "../../src/core/run/fingerprint.js";
import { type SeedDialect, type SeededKind, seedDialects } from "./seed-dialects.js";

export interface SeededRuns {
  /** How many numbered runs there are. Their children and the long run come on top. */
  readonly runs: number;
  /** The instant from which the ages of runs are counted. */
  readonly now: number;
  readonly longRunId: string;
}

export const longRun = { workflow: "flow_long", events: 50_000, children: 600 } as const;
const workflowCount = 20;
const liveWorkers = 5;
const deadWorkers = 3;
/** A million runs are then 28 days old. */
const stepMs = 2_400;
const runsPerStatement = 100_000;
const maxFigureMinutes = 14 * 24 * 60;
const sleepMs = 90 * 24 * 3_600_000;
const dayMs = 24 * 3_600_000;

/** The numbers of runs that have a tag of their own, which no newer run has. */
export const rareTag = { tag: "rare", run: 2_500 } as const;
/** The oldest failed run has an error of its own. */
const rareErrorRun = 2_001;

const failedStep = "charge";
const messageOf = (workflowNo: number) => `The card of flow ${"abcdefghijklmnopqrst"[workflowNo]} was refused.`;
/** A fingerprint does not depend on the workflow, so each workflow has its own message. */
export const fingerprints: readonly string[] = Array.from({ length: workflowCount }, (_, no) =>
  fingerprintOf({ name: "CardError", message: messageOf(no) }, failedStep),
);
export const rareFingerprint = fingerprintOf({ name: "CardError", message: "It is rare." }, failedStep);

/** Adds the runs with the numbers after `previous.runs` up to `runs`. */
export async function seedRuns(
  kind: SeededKind,
  url: string,
  runs: number,
  previous: SeededRuns | null = null,
): Promise<SeededRuns> {
  const dialect = seedDialects[kind];
  const connection = await dialect.connect(url);
  try {
    const now = previous?.now ?? Date.now();
    const seed = new Seed(dialect, now);
    for (let to = runs; to > (previous?.runs ?? 0); to -= runsPerStatement) {
      const from = Math.max((previous?.runs ?? 0) + 1, to - runsPerStatement + 1);
      // The oldest runs first, as they would have been written.
      for (const sql of seed.insertRuns(from, to)) await connection.run(sql);
    }
    const minutes = Math.min(maxFigureMinutes, Math.ceil((runs * stepMs) / 60_000));
    await connection.run("DELETE FROM pawl_figures");
    await connection.run(seed.insertFigures(minutes));
    if (previous === null) for (const sql of seed.insertOthers()) await connection.run(sql);
    for (const sql of dialect.afterSeed) await connection.run(sql);
    return { runs, now, longRunId: seed.longRunId };
  } finally {
    await connection.close();
  }
}

/** A text in SQL with expressions inside. */
function text(parts: TemplateStringsArray, ...expressions: readonly (string | number)[]): string {
  const literals = parts.map((part) => `'${part.replaceAll("'", "''")}'`);
  const joined = literals.flatMap((part, index) =>
    index < expressions.length ? [part, `(${expressions[index]})`] : [part],
  );
  return `(${joined.join(" || ")})`;
}

const textOf = (value: string) => `'${value.replaceAll("'", "''")}'`;

class Seed {
  readonly longRunId: string;
  readonly #dialect: SeedDialect;
  readonly #now: number;

  constructor(dialect: SeedDialect, now: number) {
    this.#dialect = dialect;
    this.#now = now;
    const time = (now + 1_000).toString(16).padStart(12, "0");
    this.longRunId = `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
  }

  insertRuns(from: number, to: number): string[] {
    const runs = this.#runs(from, to);
    const children = this.#children(from, to);
    return [
      this.#insertRunRows(runs),
      this.#insertRunRows(children),
      this.#insertEventRows(runs),
      this.#insertEventRows(children),
      this.#insertTaskRows(runs),
    ];
  }

  /** The facts from which all rows of a run are made. Each level of the query may use the columns of the one below. */
  #runs(from: number, to: number): string {
    const { numbers, div, int, newId, childId } = this.#dialect;
    const slot = `(${div("s.n", 11)} % 20)`;
    const kind = `CASE WHEN s.n % 11 <> 0 THEN CASE WHEN s.n % 1000 < 15 THEN 'failed' WHEN s.n % 1000 < 30 THEN 'canceled'
        WHEN s.n % 20 = 7 THEN 'parent' ELSE 'completed' END
      WHEN ${slot} = 0 THEN 'owned' WHEN ${slot} = 1 THEN 'paused' WHEN ${slot} < 5 THEN 'ready' WHEN ${slot} = 5 THEN 'planned'
      WHEN ${slot} % 2 = 0 THEN 'sleeping' ELSE 'signal' END`;
    // Most of the due runs belong to one workflow, so that the backlog of one queue is long.
    const workflowNo = `CASE WHEN f.kind = 'ready' AND ${div("f.n", 220)} % 5 <> 0 THEN 0 ELSE (${div("f.n", 220)} + f.n) % ${workflowCount} END`;
    // Two runs each were created in the same millisecond.
    const facts = `SELECT s.n AS n, ${this.#now} - ${div("s.n", 2)} * ${2 * stepMs} AS created, ${kind} AS kind FROM ${numbers(from, to)}`;
    const withIds = `SELECT f.n AS n, f.created AS created, f.kind AS kind, ${int(workflowNo)} AS workflow_no, ${newId("f.created", "f.n")} AS id FROM (${facts}) f`;
    return `SELECT g.n AS n, g.id AS id, g.created AS created, g.kind AS kind, g.workflow_no AS workflow_no,
      CASE WHEN g.kind = 'parent' THEN ${childId("g.id", "part", "0")} END AS child_id, ${noText} AS parent_id, ${noText} AS parent_node, ${noNumber} AS parent_index FROM (${withIds}) g`;
  }

  #children(from: number, to: number): string {
    return `SELECT p.n AS n, p.child_id AS id, p.created + 50 AS created, 'completed' AS kind, p.workflow_no AS workflow_no,
      ${noText} AS child_id, p.id AS parent_id, 'part' AS parent_node, ${noNumber} AS parent_index FROM (${this.#runs(from, to)}) p WHERE p.kind = 'parent'`;
  }

  #insertRunRows(runs: string): string {
    const { asId, div } = this.#dialect;
    const isOpen = "r.kind IN ('owned', 'paused', 'ready', 'planned', 'sleeping', 'signal')";
    const isRoot = "r.parent_id IS NULL";
    const fingerprint = `CASE WHEN r.n = ${rareErrorRun} THEN '${rareFingerprint}' ELSE substr('${fingerprints.join("")}', r.workflow_no * 16 + 1, 16) END`;
    const hero = `CASE WHEN ${isRoot} AND r.n % 100 = 6 THEN 'main' WHEN ${isRoot} AND r.n % 4 = 0 THEN ${text`user-${div("r.n", 40)}`} END`;
    const tags = `CASE WHEN r.n = ${rareTag.run} THEN '["eu","rare"]' WHEN r.n % 3 = 0 THEN '["eu"]' WHEN r.n % 1000 = 2 THEN '["vip","eu"]' END`;
    const pausedNote = text`{"fingerprint":"${fingerprint}","error":{"name":"CardError","message":"${this.#message()}","step":"charge"},"seenVersion":0,"seq":3,"waitingFor":[{"kind":"retry","step":"charge","attempt":2}],"paused":"Step \\"charge\\" failed: ${this.#message()}","pausedAt":${"r.created + 300"},"step":{"name":"charge","attempt":2}}`;
    const columns: Record<string, string> = {
      id: asId("r.id"),
      workflow: text`flow_${"r.workflow_no"}`,
      version: "''",
      queue: text`flow_${"r.workflow_no"}`,
      priority: "0",
      status: `CASE WHEN r.kind IN ('owned', 'ready', 'planned') THEN 'pending' WHEN r.kind IN ('sleeping', 'signal') THEN 'waiting'
        WHEN r.kind = 'parent' THEN 'completed' ELSE r.kind END`,
      input: text`{"order":${"r.n"},"lines":[{"sku":"A-1","count":2},{"sku":"B-7","count":1}]}`,
      output: `CASE WHEN r.kind IN ('completed', 'parent') THEN '{"ok":true}' END`,
      error: `CASE WHEN r.kind = 'failed' THEN ${text`{"fingerprint":"${fingerprint}",${this.#errorFields()},"step":"charge"}`}
        WHEN r.kind = 'canceled' THEN '{"name":"RunCanceledError","message":"not needed"}' END`,
      waiting: `CASE r.kind WHEN 'paused' THEN ${pausedNote}
        WHEN 'sleeping' THEN '{"seenVersion":1,"seq":3,"waitingFor":[{"kind":"sleep","name":"nap"}]}'
        WHEN 'signal' THEN '{"seenVersion":1,"seq":3,"waitingFor":[{"kind":"signal","names":["approved"]}]}'
        WHEN 'parent' THEN '3' WHEN 'completed' THEN '2' WHEN 'failed' THEN '2' WHEN 'canceled' THEN '3' END`,
      hero_type: `CASE WHEN ${hero} = 'main' THEN 'Shop' WHEN ${hero} IS NOT NULL THEN 'User' END`,
      hero_id: hero,
      start_key: `CASE WHEN ${isRoot} AND r.n % 5 = 1 THEN ${text`key-${"r.n"}`} END`,
      tags,
      parent_id: asId("r.parent_id"),
      parent_node: "r.parent_node",
      parent_index: "r.parent_index",
      created_at: "r.created",
      started_at: "CASE WHEN r.kind NOT IN ('owned', 'ready', 'planned') THEN r.created + 40 END",
      finished_at: `CASE WHEN ${isOpen} THEN NULL ELSE r.created + 400 + r.n % 1000 END`,
    };
    return insertSelect("pawl_runs", columns, `(${runs}) r ORDER BY r.n DESC`);
  }

  #message(): string {
    const letter = "substr('abcdefghijklmnopqrst', r.workflow_no + 1, 1)";
    return `CASE WHEN r.n = ${rareErrorRun} THEN 'It is rare.' ELSE ${text`The card of flow ${letter} was refused.`} END`;
  }

  /** An error as the engine stores it, without its braces. */
  #errorFields(): string {
    const stack = Array.from(
      { length: 9 },
      (_, n) => `\\n    at charge (file:///srv/shop/dist/orders/charge.js:${n + 11}:${7 * n + 5})`,
    );
    return `'"name":"CardError","message":"' || ${this.#message()} || '","stack":"CardError: ' || ${this.#message()} || '${stack.join("")}"'`;
  }

  #insertTaskRows(runs: string): string {
    const { asId, div } = this.#dialect;
    const isDuePast = `${div("r.n", 11)} % 500 = 6`;
    const dueAt = `CASE r.kind WHEN 'ready' THEN r.created WHEN 'planned' THEN r.created + ${sleepMs}
      WHEN 'sleeping' THEN r.created + 300 + CASE WHEN ${isDuePast} THEN 1000 ELSE ${sleepMs} END END`;
    const columns: Record<string, string> = {
      run_id: asId("r.id"),
      workflow: text`flow_${"r.workflow_no"}`,
      version: "''",
      priority: "0",
      state: "CASE r.kind WHEN 'owned' THEN 2 WHEN 'ready' THEN 1 ELSE 0 END",
      due_at: dueAt,
      owner: `CASE WHEN r.kind = 'owned' THEN ${text`seeded-worker-${`${div("r.n", 220)} % ${liveWorkers}`}`} END`,
      epoch: "CASE WHEN r.kind = 'owned' THEN 1 END",
      deliveries: "CASE WHEN r.kind = 'owned' THEN 1 ELSE 0 END",
      pending_messages: "0",
      fresh: this.#boolean("r.kind IN ('ready', 'planned')"),
      ...(this.#dialect === seedDialects.mysql ? { rank_no: "0" } : {}),
    };
    const isOpen = "r.kind IN ('owned', 'paused', 'ready', 'planned', 'sleeping', 'signal')";
    return insertSelect("pawl_tasks", columns, `(${runs}) r WHERE ${isOpen} ORDER BY r.n DESC`);
  }

  #boolean(condition: string): string {
    return this.#dialect === seedDialects.postgres ? `(${condition})` : `CASE WHEN ${condition} THEN 1 ELSE 0 END`;
  }

  #insertEventRows(runs: string): string {
    const { asId, div } = this.#dialect;
    const started = text`["run.started",null,null,null,"{\\"startedAt\\":${"r.created + 40"}}"]`;
    const step = `'["step.completed","reserve",1,"success","{\\"ms\\":12,\\"output\\":{\\"ok\\":true}}"]'`;
    const escaped = (fields: string) => `replace(replace(${fields}, '\\', '\\\\'), '"', '\\"')`;
    const error = escaped(this.#errorFields());
    const failed = text`["step.failed","charge",1,"failed_by_exception","{\\"error\\":{${error}},\\"ms\\":1,\\"worker\\":\\"vm:1\\"}"]`;
    const pausing = text`["step.failed","charge",1,"paused_by_exception","{\\"error\\":{${error}},\\"ms\\":1,\\"worker\\":\\"vm:1\\",\\"retryMs\\":0,\\"transient\\":true}"],["run.paused","charge",null,null,"{\\"reason\\":\\"Step \\\\\\"charge\\\\\\" failed: ${this.#message()}\\",\\"error\\":{${error}}}"]`;
    const child = text`["child.started","part",null,null,"{\\"runId\\":\\"${"r.child_id"}\\",\\"workflow\\":\\"flow_${"r.workflow_no"}\\"}"],["child.completed","part",null,null,"{\\"output\\":{\\"ok\\":true}}"]`;
    const isDuePast = `${div("r.n", 11)} % 500 = 6`;
    const sleeping = text`["timer.started","nap",null,null,"{\\"ms\\":${`CASE WHEN ${isDuePast} THEN 1000 ELSE ${sleepMs} END`}}"]`;
    const second = `CASE r.kind WHEN 'failed' THEN ${failed} WHEN 'paused' THEN ${pausing} WHEN 'parent' THEN ${child}
      WHEN 'sleeping' THEN ${step} || ',' || ${sleeping}
      WHEN 'signal' THEN ${step} || ',["wait.started","signal:approved",null,null,"{\\"names\\":[\\"approved\\"],\\"mode\\":\\"any\\"}"]'
      WHEN 'canceled' THEN ${step} || ',["run.cancel_requested",null,null,null,"{\\"reason\\":\\"not needed\\"}"]'
      WHEN 'owned' THEN '["step.started","reserve",1,null,"{\\"worker\\":\\"vm:1\\"}"]' ELSE ${step} END`;
    const columns: Record<string, string> = {
      run_id: asId("r.id"),
      seq: "1",
      span: "CASE WHEN r.kind IN ('paused', 'parent', 'sleeping', 'signal', 'canceled') THEN 3 ELSE 2 END",
      type: "'batch'",
      data: `${text`[${started},`} || ${second} || ']'`,
      at: "r.created + 300",
    };
    return insertSelect(
      "pawl_events",
      columns,
      `(${runs}) r WHERE r.kind NOT IN ('ready', 'planned') ORDER BY r.n DESC`,
    );
  }

  insertFigures(minutes: number): string {
    const { numbers, div } = this.#dialect;
    const first = Math.floor(this.#now / 60_000) - minutes + 1;
    const columns = {
      minute: `${first} + ${div("(s.n - 1)", workflowCount)}`,
      workflow: text`flow_${`(s.n - 1) % ${workflowCount}`}`,
      ...{ began: "5", completed: "4", failed: "1", canceled: "0", paused: "0" },
    };
    return insertSelect("pawl_figures", columns, numbers(1, minutes * workflowCount));
  }

  /** Workflows, workers, and the run with the long log and many children. */
  insertOthers(): string[] {
    return [...this.#insertWorkflows(), ...this.#insertWorkers(), ...this.#insertLongRun()];
  }

  #insertWorkflows(): string[] {
    const names = [...Array.from({ length: workflowCount }, (_, no) => `flow_${no}`), longRun.workflow];
    return names.map((name) => {
      const values = [textOf(name), textOf(name), "''", "NULL", `'{"priority":0,"tags":[]}'`, this.#now - 30 * dayMs];
      return `INSERT INTO pawl_workflows (name, queue, version, signature, graph, created_at) VALUES (${values.join(", ")})`;
    });
  }

  /** The leases of the live workers last a year, so that no heartbeat is needed. */
  #insertWorkers(): string[] {
    const routes = Array.from({ length: workflowCount }, (_, no) => ({ workflow: `flow_${no}`, version: "" }));
    const columns = "id, name, host, pid, port, routes, lease_ms, epoch, live, started_at, heartbeat_at";
    return Array.from({ length: liveWorkers + deadWorkers }, (_, no) => {
      const isLive = no < liveWorkers;
      const name = `seeded-worker-${no}`;
      const values = [
        ...[textOf(name), textOf(name), "'vm'", "1", "NULL", textOf(JSON.stringify(routes)), 365 * dayMs, "1"],
        ...[this.#boolean(isLive ? "1 = 1" : "1 = 0"), this.#now - dayMs, this.#now],
      ];
      return `INSERT INTO pawl_workers (${columns}) VALUES (${values.join(", ")})`;
    });
  }

  #insertLongRun(): string[] {
    const { asId } = this.#dialect;
    const { workflow, events, children } = longRun;
    const createdAt = this.#now + 1_000;
    const note = `{"seenVersion":1,"seq":${events},"waitingFor":[{"kind":"signal","names":["go"]}]}`;
    const runColumns = "id, workflow, version, queue, priority, status, input, waiting, created_at, started_at";
    const runValues = [
      asId(textOf(this.longRunId)),
      textOf(workflow),
      "''",
      textOf(workflow),
      0,
      "'waiting'",
      "'{}'",
      textOf(note),
    ];
    const taskColumns = "run_id, workflow, version, priority, state, deliveries, pending_messages, fresh";
    const taskValues = [asId(textOf(this.longRunId)), textOf(workflow), "''", 0, 0, 0, 0, this.#boolean("1 = 0")];
    const isMysql = this.#dialect === seedDialects.mysql;
    const parent = textOf(this.longRunId);
    const childRuns = `SELECT s.n AS n, ${this.#dialect.childId(parent, "part", "(s.n - 1)")} AS id, ${createdAt + 50} AS created, 'completed' AS kind,
      1 AS workflow_no, ${noText} AS child_id, ${parent} AS parent_id, 'part' AS parent_node, s.n - 1 AS parent_index FROM ${this.#dialect.numbers(1, children)}`;
    return [
      `INSERT INTO pawl_runs (${runColumns}) VALUES (${[...runValues, createdAt, createdAt].join(", ")})`,
      `INSERT INTO pawl_tasks (${taskColumns}${isMysql ? ", rank_no" : ""}) VALUES (${taskValues.join(", ")}${isMysql ? ", 0" : ""})`,
      ...this.#insertLongLog(),
      this.#insertRunRows(childRuns),
      this.#insertEventRows(childRuns),
    ];
  }

  /** Of 20 events each, the first ten have their own rows and the others share one. */
  #insertLongLog(): string[] {
    const { numbers, asId } = this.#dialect;
    const at = this.#now + 2_000;
    const single = (k: string) => text`{"ms":3,"output":{"item":${k}}}`;
    const packed = Array.from(
      { length: 10 },
      (_, n) =>
        text`["step.completed","s#${`s.n + ${n}`}",1,"success","{\\"ms\\":3,\\"output\\":{\\"item\\":${`s.n + ${n}`}}}"]`,
    ).join(" || ',' || ");
    const common = { run_id: asId(textOf(this.longRunId)), at: `${at}` };
    const singleRows = {
      ...common,
      ...{
        seq: "s.n",
        span: "1",
        attempt: "CASE WHEN s.n > 2 THEN 1 END",
        outcome: "CASE WHEN s.n > 2 THEN 'success' END",
      },
      type: "CASE s.n WHEN 1 THEN 'run.started' WHEN 2 THEN 'wait.started' ELSE 'step.completed' END",
      node: `CASE s.n WHEN 1 THEN NULL WHEN 2 THEN 'signal:go' ELSE ${text`s#${"s.n"}`} END`,
      data: `CASE s.n WHEN 1 THEN '{"startedAt":${this.#now + 1_000}}' WHEN 2 THEN '{"names":["go"],"mode":"any"}' ELSE ${single("s.n")} END`,
    };
    const packedRows = { ...common, seq: "s.n", span: "10", type: "'batch'", data: `'[' || ${packed} || ']'` };
    return [
      insertSelect("pawl_events", singleRows, `${numbers(1, longRun.events)} WHERE (s.n - 1) % 20 < 10`),
      insertSelect("pawl_events", packedRows, `${numbers(1, longRun.events)} WHERE (s.n - 1) % 20 = 10`),
    ];
  }
}

/** PostgreSQL cannot guess the type of a bare NULL. */
const noText = "CASE WHEN 1 = 0 THEN '' END";
const noNumber = "CASE WHEN 1 = 0 THEN 1 END";

const insertSelect = (table: string, columns: Readonly<Record<string, string>>, from: string) =>
  `INSERT INTO ${table} (${Object.keys(columns).join(", ")}) SELECT ${Object.values(columns).join(", ")} FROM ${from}`;
