/**
 * Behind a pooler, Pawl's connections outlive the server: after a restart, or a fail-over to a standby that lacks
 * recent writes, the next statement may reach another server without a new connection. A statement may also wait in the
 * pooler until long after Pawl has stopped waiting for its answer. So every write of a worker carries a condition: on
 * which server and until when it is valid. A write that has no effect for that reason looks fenced; it is sent again
 * once it is certain that the server has lost nothing.
 */
import type { Runtime } from "../../../runtime/runtime.js";
import type { SqlRow } from "../../sql/dialect.js";

/** Behind a pooler, `Database` replaces this marker by the server condition. Without a pooler it stays a comment. */
export const serverConditionMarker = "/* server condition */";

const serverStartTime = "extract(epoch FROM pg_postmaster_start_time())::text";

/** The columns that `recordServer` needs. */
export const serverColumns = `${serverStartTime} AS server, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`;

/** When a write was sent, and how often the server had changed by then. */
export interface WriteTarget {
  readonly sentAt: number;
  readonly changeCount: number;
}

export class ServerIdentity {
  readonly #runtime: Runtime;
  /** The server's start time, which identifies it; null until the first worker registers. */
  #serverStart: string | null = null;
  /** The server's clock minus this process's monotonic clock. */
  #offsetMs = 0;
  /** How often the server turned out to be another one, or its clock to have been set. */
  #changeCount = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  isSameServer(row: SqlRow | undefined): boolean {
    return this.#serverStart === null || row?.server === this.#serverStart;
  }

  /** The target of a statement that is sent now. */
  currentTarget(): WriteTarget {
    return { sentAt: this.#runtime.monotonic(), changeCount: this.#changeCount };
  }

  /** Whether a statement with this target may have had no effect because of its server condition. */
  mayHaveMissed({ sentAt, changeCount }: WriteTarget, timeoutMs: number): boolean {
    return changeCount !== this.#changeCount || this.#runtime.monotonic() - sentAt > timeoutMs;
  }

  /** @param row a row with `serverColumns` */
  recordServer(row: SqlRow): void {
    const offsetMs = Number(row.now) - this.#runtime.monotonic();
    if (this.#serverStart !== row.server || offsetMs - this.#offsetMs > clockToleranceMs) this.#changeCount += 1;
    this.#serverStart = row.server as string;
    this.#offsetMs = offsetMs;
  }

  /** @param timeoutMs how long the statement is valid, which is how long the caller waits for the answer */
  serverCondition(timeoutMs: number): string {
    if (this.#serverStart === null) return "";
    const validUntilSeconds = (this.#runtime.monotonic() + this.#offsetMs + timeoutMs) / 1000;
    return `AND ${serverStartTime} = '${this.#serverStart}' AND statement_timestamp() < to_timestamp(${validUntilSeconds.toFixed(3)})`;
  }
}

/** If the server's clock is ahead by more than this since the last check, it has been set. */
const clockToleranceMs = 500;
