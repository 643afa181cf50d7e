/**
 * Behind a pooler our connections outlive the server's: after a restart, or a fail-over to a standby that was behind, the
 * next statement may meet another server, and no new connection says so. A statement may also wait in the pooler until long
 * after it was given up here. So the writes of workers say which server they are meant for, and until when. What has no
 * effect for that reason looks like a lost fence, and is sent again once it is known that nothing is missing.
 */
import type { Runtime } from "../../../runtime/runtime.js";
import type { SqlRow } from "../../sql/dialect.js";

/** Stands where a fence is checked. To a server that is reached directly it is a comment. */
export const serverConditionMarker = "/* meant for */";

const serverStartTime = "extract(epoch FROM pg_postmaster_start_time())::text";

/** The columns of a question that `learn` understands. */
export const serverColumns = `${serverStartTime} AS server, (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now`;

export interface WriteTarget {
  readonly sentAt: number;
  readonly changeCount: number;
}

export class ServerIdentity {
  readonly #runtime: Runtime;
  /** When it was started, as it says; null: no worker has registered yet. */
  #serverStart: string | null = null;
  /** The server's clock, less our own monotonic one. */
  #offsetMs = 0;
  /** How often it turned out to be another, or its clock to be set. */
  #changeCount = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  isSameServer(row: SqlRow | undefined): boolean {
    return this.#serverStart === null || row?.server === this.#serverStart;
  }

  /** What a statement that is sent now is meant for. */
  currentTarget(): WriteTarget {
    return { sentAt: this.#runtime.monotonic(), changeCount: this.#changeCount };
  }

  /** Whether a statement that was sent with this aim may have had no effect for that reason. */
  mayHaveMissed({ sentAt, changeCount }: WriteTarget, timeoutMs: number): boolean {
    return changeCount !== this.#changeCount || this.#runtime.monotonic() - sentAt > timeoutMs;
  }

  /** @param row the answer to `whichServer` */
  recordServer(row: SqlRow): void {
    const offsetMs = Number(row.now) - this.#runtime.monotonic();
    if (this.#serverStart !== row.server || offsetMs - this.#offsetMs > clockToleranceMs) this.#changeCount += 1;
    this.#serverStart = row.server as string;
    this.#offsetMs = offsetMs;
  }

  /** @param timeoutMs how long the answer is waited for */
  serverCondition(timeoutMs: number): string {
    if (this.#serverStart === null) return "";
    const validUntilSeconds = (this.#runtime.monotonic() + this.#offsetMs + timeoutMs) / 1000;
    return `AND ${serverStartTime} = '${this.#serverStart}' AND statement_timestamp() < to_timestamp(${validUntilSeconds.toFixed(3)})`;
  }
}

/** A clock that is further ahead than this was set. */
const clockToleranceMs = 500;
