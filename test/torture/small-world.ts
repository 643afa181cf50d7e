/** A small campaign without faults, in one process on SQLite, which the checker's own test damages. */
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type Pawl } from "pawl";
import { type RawSql, rawSql } from "../support/raw-sql.js";
import { type CommandName, type Entry, type Intent, LedgerWriter, readLedger } from "./ledger.js";
import type { LogEvent } from "./records.js";
import { type Snapshot, takeSnapshot } from "./snapshots.js";
import { workloadOf } from "./workflows/index.js";
import { userTables } from "./workflows/transactions.js";

const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const inputs: Readonly<Record<string, unknown>> = {
  steps: { plan: ["ok", "throws"] },
  sleeper: { ms: 20 },
  listener: { count: 2 },
  family: { items: [{}, { fails: true }] },
  booker: { modes: ["plain", "contended"], flip: false },
  careful: null,
  trip: { fails: true },
  Sweep: { items: 5 },
  Assembly: { n: 1 },
  order: { large: true, fails: false },
};

export class SmallWorld {
  readonly #folder = mkdtempSync(join(tmpdir(), "pawl-torture-test-"));
  readonly #ledgerFolder = join(this.#folder, "ledger");
  readonly #file = join(this.#folder, "pawl.sqlite");
  #copies = 0;
  #commands = 0;
  /** The run id of each workflow. */
  readonly ids: Record<string, string> = {};
  entries: readonly Entry[] = [];
  snapshots: readonly Snapshot[] = [];

  static async open(): Promise<SmallWorld> {
    const world = new SmallWorld();
    await world.#live();
    return world;
  }

  /** A copy of its database, to be damaged. */
  async copy(): Promise<RawSql> {
    this.#copies += 1;
    const file = join(this.#folder, `copy-${this.#copies}.sqlite`);
    copyFileSync(this.#file, file);
    return rawSql(`sqlite:${file}`);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #live(): Promise<void> {
    mkdirSync(this.#ledgerFolder);
    const ledger = new LedgerWriter(this.#ledgerFolder, "world");
    const url = `sqlite:${this.#file}`;
    const pawl = await connect(url, { logger: silent });
    const sql = await rawSql(url);
    for (const statement of userTables) await sql.query(statement);
    await pawl.worker(workloadOf({ ledger, store: "sqlite" })).start();
    const runs = await Promise.all(Object.keys(inputs).map((workflow) => this.#start(pawl, ledger, workflow)));
    for (const key of ["first", "second"]) {
      const run = pawl.run(this.ids.listener as string);
      await this.#note(ledger, { command: "signal", run: run.id, signal: "go", key }, () =>
        run.signal("go", key, { key }),
      );
      // The ledger has a resolution of a millisecond and defines no order within one.
      await sleep(5);
    }
    await Promise.allSettled(runs.map((run) => run.result()));
    await pawl.close();
    this.snapshots = [await takeSnapshot(sql)];
    await sql.close();
    this.entries = readLedger(this.#ledgerFolder);
  }

  async #start(pawl: Pawl, ledger: LedgerWriter, workflow: string) {
    const idempotencyKey = `start-${workflow}`;
    const hero = workflow === "Sweep" ? { hero: { type: "Account", id: "1" } } : {};
    const run = await this.#note(ledger, { command: "start", workflow, key: idempotencyKey }, () =>
      pawl.workflow<any, any>(workflow).trigger(inputs[workflow], { idempotencyKey, ...hero }),
    );
    this.ids[workflow] = run.id;
    return run;
  }

  async #note<Given>(
    ledger: LedgerWriter,
    what: Partial<Intent> & { readonly command: CommandName },
    send: () => Promise<Given>,
  ): Promise<Given> {
    this.#commands += 1;
    const id = `c${this.#commands}`;
    ledger.write({ kind: "intent", id, workflow: null, run: null, signal: null, key: null, ...what, at: Date.now() });
    const given = await send();
    const run = (given as { id?: string } | undefined)?.id ?? null;
    ledger.write({ kind: "answer", id, answer: "acknowledged", run, error: null, at: Date.now() });
    return given;
  }
}

/** Rewrites the log of a run, one row per event, as `edit` changed it. */
export async function rewriteLog(sql: RawSql, log: readonly LogEvent[], run: string, edit: Edit): Promise<void> {
  const events = edit(log.map((one) => ({ ...one })));
  await sql.query(`DELETE FROM pawl_events WHERE run_id = '${run}'`);
  for (const [index, { type, node, attempt, outcome, data, at }] of events.entries())
    await sql.query(
      `INSERT INTO pawl_events (run_id, seq, span, type, node, attempt, outcome, data, at) VALUES ('${run}',
        ${index + 1}, 1, '${type}', ${quoted(node)}, ${attempt}, ${quoted(outcome)}, ${quoted(JSON.stringify(data))}, ${at})`,
    );
}

export type Edit = (log: LogEvent[]) => LogEvent[];

const quoted = (text: string | null) => (text === null ? "NULL" : `'${text.replaceAll("'", "''")}'`);
