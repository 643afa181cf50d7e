/** Claims runs of workflows with limits: sorts what is due into classes, and asks for the admission of the first of them. */
import { classesToRead } from "../../core/limits/admission.js";
import { runClassOf } from "../../core/limits/lane.js";
import type { Logger } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Runtime } from "../../runtime/runtime.js";
import type {
  AdmissionRequest,
  AdmittedTask,
  FreedSlots,
  SortedTask,
  UnsortedTask,
} from "../../store/contract/limits.js";
import type { Fence, Route, RunRecord, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import type { LaneWaker } from "./lane-waker.js";
import { classOfRun, hasOpenLimits } from "./limited-workflows.js";
import type { OpenCycles } from "./open-cycles.js";

export interface LimitedClaimsOptions {
  readonly runtime: Pick<Runtime, "monotonic">;
  readonly store: Store;
  readonly log: Logger;
  readonly waker: LaneWaker;
  readonly cycles: OpenCycles;
  readonly routes: () => readonly Route[];
  readonly definition: (workflow: string, version: string) => WorkflowDefinition | undefined;
}

export type LimitedClaim =
  | {
      readonly kind: "claimed";
      readonly at: number;
      readonly tasks: readonly AdmittedTask[];
      readonly nextDueAt: number | null;
      /** Whether another claim would probably find more. */
      readonly hasMore: boolean;
    }
  | { readonly kind: "fenced" };

/** How many due tasks of each route are sorted in one transaction. */
const pageSize = 500;
/**
 * Due tasks are sorted before any run is admitted, so that the runs of one key cannot hide those of others behind them. But
 * after this many pages, runs are admitted in between.
 */
const maxPagesPerClaim = 20;
/**
 * When slots have become free, the runs that wait for them are admitted without another look for due tasks if the last look is
 * not older than this. So a lane with one slot and short runs costs one look for many runs.
 */
const maxLookAgeMs = 20;

export class LimitedClaims {
  readonly #options: LimitedClaimsOptions;
  /** When due tasks were last looked for and all found ones sorted, by the monotonic clock of this process. */
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(options: LimitedClaimsOptions) {
    this.#options = options;
  }

  async claim(fence: Fence, limit: number): Promise<LimitedClaim> {
    const claim = await this.#sortAndAdmit(fence, limit);
    const { cycles } = this.#options;
    if (claim.kind === "fenced" || !cycles.hasLanes) return claim;
    const refused = await this.#refuseClosing();
    return refused ? { ...claim, hasMore: true } : claim;
  }

  /** Whether a run was refused, which a worker must end now. The runs that were claimed begin in any case. */
  async #refuseClosing(): Promise<boolean> {
    const { cycles, log } = this.#options;
    try {
      return (await cycles.refuseClosing()).length > 0;
    } catch (error) {
      warnOfRetry(log, "It could not be checked whether runs wait for each other; that is tried again.", error);
      return false;
    }
  }

  async #sortAndAdmit(fence: Fence, limit: number): Promise<LimitedClaim> {
    const { runtime, store, waker } = this.#options;
    await waker.settled();
    const routes = this.#options.routes();
    if (routes.length === 0 || limit <= 0) {
      waker.sendFreed();
      return { kind: "claimed", at: await store.now(), tasks: [], nextDueAt: null, hasMore: false };
    }
    if (waker.hasFreed && runtime.monotonic() - this.#lookedAt < maxLookAgeMs) {
      const freed = waker.takeFreed(classesToRead(limit));
      const claim = await this.#admit({ fence, routes, limit, freed });
      // What became due meanwhile is found by the look that follows.
      return claim.kind === "fenced" ? claim : { ...claim, nextDueAt: claim.at + maxLookAgeMs };
    }
    const lookedAt = runtime.monotonic();
    let unsorted = await store.limits.unsorted({ routes, limit: pageSize });
    let { hasOpenClasses } = unsorted;
    let isSorted = false;
    for (let page = 1; unsorted.tasks.length > 0; page += 1) {
      const { hasPostponed } = await store.limits.sort(await this.#classify(unsorted.tasks));
      hasOpenClasses = true;
      isSorted = unsorted.tasks.length < pageSize && !hasPostponed;
      if (hasPostponed) break;
      if (isSorted || page === maxPagesPerClaim) break;
      unsorted = await store.limits.unsorted({ routes, limit: pageSize });
    }
    const { at, nextDueAt } = unsorted;
    const isComplete = unsorted.tasks.length === 0 || isSorted;
    if (isComplete) this.#lookedAt = lookedAt;
    const opened = unsorted.openedLanes.map((lane): FreedSlots => ({ lane, count: limit }));
    const freed = mergedSlots([...opened, ...waker.takeFreed(classesToRead(limit))]);
    if (!hasOpenClasses && freed.length === 0) return { kind: "claimed", at, tasks: [], nextDueAt, hasMore: false };
    const claim = await this.#admit({ fence, routes, limit, freed });
    return claim.kind === "fenced" ? claim : { ...claim, nextDueAt, hasMore: claim.hasMore || !isComplete };
  }

  async #admit(request: AdmissionRequest): Promise<LimitedClaim> {
    const { store, waker } = this.#options;
    try {
      const admission = await store.limits.admit(request);
      if (admission.kind === "fenced") return admission;
      waker.free(admission.lanesToWake);
      const { at, tasks, hasMore } = admission;
      if (tasks.length >= request.limit) waker.keepFreedBriefly();
      return { kind: "claimed", at, tasks, nextDueAt: null, hasMore: hasMore || waker.hasFreed };
    } catch (error) {
      waker.free(request.freed ?? []);
      throw error;
    }
  }

  async #classify(tasks: readonly UnsortedTask[]): Promise<readonly SortedTask[]> {
    const { definition, log, cycles } = this.#options;
    const known = tasks.flatMap(({ route, dueAt, run }) => {
      const found = definition(run.workflow, run.version);
      return found === undefined ? [] : [{ route, dueAt, run, definition: found }];
    });
    // A run that has begun may hold a slot until its end although the code says something else now.
    const mayHold = known.filter(({ run, definition: found }) => hasOpenLimits(found) || run.startedAt !== null);
    const openLanes = await this.#openLanesOf(mayHold.map(({ run }) => run.id));
    const refused = await this.#refusedOf(known);
    return known.map(({ route, dueAt, run, definition: found }) => {
      const hasBegun = run.startedAt !== null;
      if (refused.has(run.id))
        return { runId: run.id, dueAt, runClass: runClassOf(route, run.version, [], "full"), hasBegun };
      const runClass = classOfRun(found, { route, run, held: openLanes.get(run.id) ?? [] }, log);
      // Only the child of a run can wait for a slot that a run keeps because it waits for the child.
      if (run.parentId != null) cycles.note(runClass.runClass.lanes);
      return { runId: run.id, dueAt, ...runClass, hasBegun };
    });
  }

  /** Runs that have a message that their limit is full, but whose worker died before it could end them. They need no slot. */
  async #refusedOf(
    tasks: readonly { readonly run: RunRecord; readonly definition: WorkflowDefinition }[],
  ): Promise<ReadonlySet<string>> {
    const mayBeRefused = ({ limits }: WorkflowDefinition) =>
      limits.some((limit) => limit.onFull !== "wait" || limit.while === "open");
    const ids = tasks.flatMap(({ run, definition }) =>
      run.startedAt === null && mayBeRefused(definition) ? [run.id] : [],
    );
    if (ids.length === 0) return new Set();
    const inboxes = await this.#options.store.inbox(ids);
    return new Set(ids.filter((id) => inboxes.get(id)?.some(({ kind }) => kind === "limitFull") === true));
  }

  /**
   * The lanes in which these runs hold a slot until they end: they need no further one. A run whose worker died before its first
   * commit has not begun according to its row, and holds its slots nevertheless.
   */
  async #openLanesOf(runIds: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>> {
    const lanesOf = new Map<string, string[]>();
    if (runIds.length === 0) return lanesOf;
    for (const { runId, node, lane, owner } of await this.#options.store.limits.slots(
      { runIds },
      Number.MAX_SAFE_INTEGER,
    ))
      if (owner === null && node === "") lanesOf.set(runId, [...(lanesOf.get(runId) ?? []), lane]);
    return lanesOf;
  }
}

function mergedSlots(slots: readonly FreedSlots[]): readonly FreedSlots[] {
  const countOf = new Map<string, number>();
  for (const { lane, count } of slots) countOf.set(lane, (countOf.get(lane) ?? 0) + count);
  return [...countOf].map(([lane, count]) => ({ lane, count }));
}
