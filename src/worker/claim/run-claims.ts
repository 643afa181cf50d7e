/** Claims runs of all workflows of a worker: those without limits in one statement, and those with limits by admission. */
import type { AdmittedTask } from "../../store/contract/limits.js";
import type { ClaimedTask, Fence, Route, Store } from "../../store/contract/store.js";
import type { LimitedClaims } from "../limits/limited-claims.js";

interface UnlimitedRoutes {
  /** The routes of the workflows without limits. */
  nextRoutes(): readonly Route[];
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
  readonly #store: Store;
  readonly #registry: UnlimitedRoutes;
  readonly #limited: LimitedClaims | null;
  #isLimitedFirst = false;

  /** @param limited null when no workflow has limits */
  constructor(store: Store, registry: UnlimitedRoutes, limited: LimitedClaims | null) {
    this.#store = store;
    this.#registry = registry;
    this.#limited = limited;
  }

  /** The two kinds take turns at being first, so that neither starves the other when the worker has few free slots. */
  async claim(request: RunClaimRequest): Promise<RunClaim> {
    const limited = this.#limited;
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
    const routes = this.#registry.nextRoutes();
    if (this.#limited !== null && routes.length === 0)
      return { kind: "claimed", at: 0, tasks: [], nextDueAt: null, hasMore: false };
    const claim = await this.#store.claim({ fence, routes, limit, limitPerRoute });
    if (claim.kind === "fenced") return claim;
    return { ...claim, hasMore: claim.tasks.length >= Math.min(limit, limitPerRoute) };
  }
}
