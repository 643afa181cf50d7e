/** The parts of a worker that exist only if one of its workflows has limits. */
import type { Logger } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import type { Runtime } from "../../runtime/runtime.js";
import { waitAtMost } from "../../runtime/wait.js";
import type { FreedSlots, LimitSettings } from "../../store/contract/limits.js";
import type { Route, Store } from "../../store/contract/store.js";
import { warnOfRetry } from "../../telemetry/warn-of-retry.js";
import { LaneWaker } from "./lane-waker.js";
import { LimitedClaims } from "./limited-claims.js";
import { limitSettingsOf } from "./limited-workflows.js";
import { OpenCycles } from "./open-cycles.js";
import { SlotKeeper } from "./slot-keeper.js";

interface LimitedRegistry {
  readonly limitedDefinitions: readonly WorkflowDefinition[];
  limitedRoutes(): readonly Route[];
  definitionOf(workflow: string, version: string): WorkflowDefinition | undefined;
}

interface LimitServices {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Logger;
}

/** An unreachable database must not delay the stop for ever. */
const stopTimeoutMs = 2_000;

/**
 * Announces lanes that have free slots. A worker without limited workflows may have steps with limits, in whose lanes runs of
 * other workers wait.
 */
export const freeLanes =
  (limits: WorkerLimits | null, { store, log }: LimitServices) =>
  (freed: readonly FreedSlots[]): void => {
    if (freed.length === 0) return;
    if (limits !== null) return limits.free(freed);
    store.limits
      .wake(freed)
      .catch((error: unknown) => warnOfRetry(log, "Free slots of limits could not be announced.", error));
  };

export class WorkerLimits {
  readonly claims: LimitedClaims;
  readonly #settings: readonly LimitSettings[];
  readonly #services: LimitServices;
  readonly #waker: LaneWaker;
  readonly #cycles: OpenCycles;
  #admitSoon: (() => boolean) | null = null;

  constructor(services: LimitServices, registry: LimitedRegistry) {
    const { runtime, store, log } = services;
    this.#services = services;
    this.#settings = limitSettingsOf(registry.limitedDefinitions);
    this.#waker = new LaneWaker(store.limits, log, runtime);
    const openLimits = new Set(this.#settings.filter(({ isHeldOpen }) => isHeldOpen).map(({ name }) => name));
    this.#cycles = new OpenCycles(store, openLimits);
    this.#waker.onSweep(async (isHousekeeping) => {
      if (isHousekeeping) await this.#cycles.noteSome();
      this.#lookForCycles([]);
    });
    this.claims = new LimitedClaims({
      runtime,
      store,
      log,
      waker: this.#waker,
      cycles: this.#cycles,
      routes: () => registry.limitedRoutes(),
      definition: (workflow, version) => registry.definitionOf(workflow, version),
    });
  }

  /** Stores the limits, before the first run is admitted under them. */
  register(): Promise<void> {
    return this.#services.store.limits.register(this.#settings);
  }

  /** @param admitSoon makes the worker claim runs; returns false if it claims none now */
  start(admitSoon: () => boolean): void {
    this.#admitSoon = admitSoon;
    this.#waker.onFreed(admitSoon);
    this.#waker.start();
  }

  /** Called when the worker is deregistered: the slots of runs that it could not finish are free now. */
  async stop(): Promise<void> {
    this.#waker.stop();
    this.#waker.sweepSoon();
    await waitAtMost(this.#services.runtime, stopTimeoutMs, this.#waker.settled());
  }

  free(slots: readonly FreedSlots[]): void {
    this.#waker.free(slots);
  }

  newSlotKeeper(): SlotKeeper {
    this.#waker.sweepSoon();
    const cycles = this.#cycles;
    return new SlotKeeper(this.#waker, {
      get isUndecided() {
        return cycles.isUndecided;
      },
      onWaitingForChildren: (lanes) => this.#lookForCycles(lanes),
    });
  }

  #lookForCycles(lanes: readonly string[]): void {
    this.#cycles.note(lanes);
    this.#cycles.lookAgain();
    if (this.#cycles.hasLanes) this.#admitSoon?.();
  }
}
