/**
 * Behind a pooler our connections outlive the server's: after a restart, or a fail-over to a standby that was behind, the
 * next statement may meet another server, and no new connection says so. A statement may also wait in the pooler until long
 * after it was given up here. So the writes of workers say which server they are meant for, and until when. What has no
 * effect for that reason looks like a lost fence, and is sent again once it is known that nothing is missing.
 */
import type { Runtime } from "../../../runtime/runtime.js";
import type { SqlRow } from "../../sql/dialect.js";

/** Stands where a fence is checked. To a server that is reached directly it is a comment. */
export const meantFor = "/* meant for */";

const startOf = "extract(epoch FROM pg_postmaster_start_time())::text";

/** The columns of a question that `learn` understands. */
export const whichServer = `${startOf} AS server, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`;

export interface Aim {
  readonly sentAt: number;
  readonly changes: number;
}

export class SameServer {
  readonly #runtime: Runtime;
  /** When it was started, as it says; null: no worker has registered yet. */
  #server: string | null = null;
  /** The server's clock, less our own monotonic one. */
  #offsetMs = 0;
  /** How often it turned out to be another, or its clock to be set. */
  #changes = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  isSame(row: SqlRow | undefined): boolean {
    return this.#server === null || row?.server === this.#server;
  }

  /** What a statement that is sent now is meant for. */
  aim(): Aim {
    return { sentAt: this.#runtime.monotonic(), changes: this.#changes };
  }

  /** Whether a statement that was sent with this aim may have had no effect for that reason. */
  hasMissed({ sentAt, changes }: Aim, forMs: number): boolean {
    return changes !== this.#changes || this.#runtime.monotonic() - sentAt > forMs;
  }

  /** @param row the answer to `whichServer` */
  learn(row: SqlRow): void {
    const offsetMs = Number(row.now) - this.#runtime.monotonic();
    if (this.#server !== row.server || offsetMs - this.#offsetMs > clockToleranceMs) this.#changes += 1;
    this.#server = row.server as string;
    this.#offsetMs = offsetMs;
  }

  /** @param forMs how long the answer is waited for */
  condition(forMs: number): string {
    if (this.#server === null) return "";
    const until = (this.#runtime.monotonic() + this.#offsetMs + forMs) / 1000;
    return `AND ${startOf} = '${this.#server}' AND statement_timestamp() < to_timestamp(${until.toFixed(3)})`;
  }
}

/** A clock that is further ahead than this was set. */
const clockToleranceMs = 500;
