/** Claims runs of all workflows of a worker: those without limits in one statement, and those with limits by admission. */
import type { AdmittedTask } from "../../store/contract/limits.js";
import type { ClaimedTask, Fence, Route, Store } from "../../store/contract/store.js";
import type { LimitedClaims } from "../limits/limited-claims.js";

export interface RunClaimsOptions {
  readonly store: Store;
  /** The routes of the workflows without limits. */
  readonly routes: () => readonly Route[];
  /** null when no workflow has limits. */
  readonly limited: LimitedClaims | null;
}

export interface RunClaimRequest {
  readonly fence: Fence;
  readonly limit: number;
  readonly limitPerRoute: number;
}

export type RunClaim =
  | {
      readonly kind: "claimed";
      readonly at: number;
      readonly tasks: readonly (ClaimedTask | AdmittedTask)[];
      readonly nextDueAt: number | null;
      /** Whether more due runs probably exist. */
      readonly hasMore: boolean;
    }
  | { readonly kind: "fenced" };

export class RunClaims {
  readonly #options: RunClaimsOptions;
  #isLimitedFirst = false;

  constructor(options: RunClaimsOptions) {
    this.#options = options;
  }

  /** The two kinds take turns at being first, so that neither starves the other when the worker has few free slots. */
  async claim(request: RunClaimRequest): Promise<RunClaim> {
    const { limited } = this.#options;
    if (limited === null) return this.#claimUnlimited(request);
    this.#isLimitedFirst = !this.#isLimitedFirst;
    const claimLimited = (limit: number): Promise<RunClaim> => limited.claim(request.fence, limit);
    const claimUnlimited = (limit: number) => this.#claimUnlimited({ ...request, limit });
    const [claimFirst, claimSecond] = this.#isLimitedFirst
      ? [claimLimited, claimUnlimited]
      : [claimUnlimited, claimLimited];
    const first = await claimFirst(request.limit);
    if (first.kind === "fenced") return first;
    const limit = request.limit - first.tasks.length;
    // Whether the second kind has due runs is not known, so the next claim asks for them.
    if (limit <= 0) return { ...first, hasMore: true };
    const second = await claimSecond(limit);
    if (second.kind === "fenced") return first.tasks.length > 0 ? first : second;
    const dueInstants = [first.nextDueAt, second.nextDueAt].filter((at) => at !== null);
    return {
      kind: "claimed",
      at: Math.max(first.at, second.at),
      tasks: [...first.tasks, ...second.tasks],
      nextDueAt: dueInstants.length === 0 ? null : Math.min(...dueInstants),
      hasMore: first.hasMore || second.hasMore,
    };
  }

  async #claimUnlimited({ fence, limit, limitPerRoute }: RunClaimRequest): Promise<RunClaim> {
    const { store, routes, limited } = this.#options;
    const claimedRoutes = routes();
    if (limited !== null && claimedRoutes.length === 0)
      return { kind: "claimed", at: 0, tasks: [], nextDueAt: null, hasMore: false };
    const claim = await store.claim({ fence, routes: claimedRoutes, limit, limitPerRoute });
    if (claim.kind === "fenced") return claim;
    return { ...claim, hasMore: claim.tasks.length >= Math.min(limit, limitPerRoute) };
  }
}
