/** The answer of `run.explain()`. */

/** Why a run is not moving, as `run.explain()` returns it. */
export interface Explanation {
  /** The reason, for programs. */
  readonly because:
    | "ended"
    | "paused"
    | "executing"
    | "worker_lease_expired"
    | "planned"
    | "queued"
    | "waiting"
    | "queue_paused"
    | "no_worker"
    | "gathering"
    | "limited"
    | "about_to_run";
  /** The reason in one or two sentences. */
  readonly text: string;
  /** Since when this reason has applied; null if that is not known. */
  readonly since: Date | null;
  /** When the run continues if nothing else happens; null if that is not known. */
  readonly until: Date | null;
  /** When the run is canceled if it has not begun by then; absent when it may begin at any time. */
  readonly expiresAt?: Date;
}
