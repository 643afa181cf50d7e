/** Counts what a PostgreSQL server executes, by its own log of every statement from any client. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import type { OwnServer } from "../../scripts/servers.mjs";

/** Every statement starts with such a line; further lines of the same statement start with a tab. */
const statement = /^pawl-log .*LOG: {2}(?:statement|execute [^:]*): (.*)$/gm;

export class StatementLog {
  readonly #file: string;

  /** From now on the server logs every statement, including BEGIN, COMMIT and SET. */
  static async of(server: OwnServer): Promise<StatementLog> {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    await client.query("ALTER SYSTEM SET log_line_prefix = 'pawl-log %p '");
    await client.query("ALTER SYSTEM SET log_statement = 'all'");
    await client.query("SELECT pg_reload_conf()");
    await client.end();
    const log = new StatementLog(join(server.dir, "log"));
    await log.#untilItLogs(server);
    return log;
  }

  private constructor(file: string) {
    this.#file = file;
  }

  /** The first line of every statement so far. */
  statements(): string[] {
    return [...readFileSync(this.#file, "utf8").matchAll(statement)].map(([, text]) => text as string);
  }

  /** The statements that are executed while `work` runs. */
  async during(work: () => Promise<unknown>): Promise<string[]> {
    const before = this.statements().length;
    await work();
    return this.statements().slice(before);
  }

  /** A new setting reaches each connection a moment later. */
  async #untilItLogs(server: OwnServer): Promise<void> {
    while (!this.statements().includes("SELECT 'logged'")) {
      const client = new pg.Client({ connectionString: server.url });
      await client.connect();
      await client.query("SELECT 'logged'");
      await client.end();
    }
  }
}
