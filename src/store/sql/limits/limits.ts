/** `Limits` of the SQL stores. */
import { TurnCounter } from "../../../core/limits/order.js";
import type { LimitOverride } from "../../../core/limits/settings.js";
import type {
  AdmissionRequest,
  AdmissionResult,
  FreedSlots,
  LimitRefusal,
  LimitSettings,
  Limits,
  SortedTask,
  SortResult,
  StepSlotChanges,
  StepSlotResult,
} from "../../contract/limits.js";
import type { Fence, Hint, Route } from "../../contract/store.js";
import type { SqlRow } from "../dialect.js";
import { admitRuns, decodeCandidates, selectCandidates } from "./admit.js";
import { buildStatement, type LimitsDialect, type SqlText, type TransactionSteps } from "./dialect.js";
import { refuseWaiting } from "./guard.js";
import { readLooks, readParkedLanes } from "./looks.js";
import { countWaiting, readClasses, readLanes, readLimits, readSlots, readUnsorted } from "./reads.js";
import { encodeSettings } from "./settings.js";
import { sortTasks } from "./sort.js";
import { addUnits, changeStepSlots, lookAtLanes } from "./steps.js";
import { readClassesOfRoutes, unsortTasks } from "./unsort.js";
import { readBlockedClasses, readHeads, readHolders, readUsage } from "./usage.js";
import { findWakeableLanes, removeLeftOvers, wakeLanes } from "./wake.js";

/** What a store provides. */
export interface LimitsPort {
  /** Executes statements that only read. */
  read(statements: readonly SqlText[]): Promise<readonly (readonly SqlRow[])[]>;
  /** Executes statements that each commit by themselves; executing them twice does no harm. */
  write(statements: readonly SqlText[]): Promise<readonly (readonly SqlRow[])[]>;
  /** Takes the steps in one transaction, which may be tried again from the beginning. */
  transact<R>(begin: () => TransactionSteps<R>): Promise<R>;
  /** Wraps what is done under a fence: a store may know that it is not valid any more, whatever the database says. */
  underFence<R extends { readonly kind: string }>(
    fence: Fence,
    work: () => Promise<R>,
  ): Promise<R | { readonly kind: "fenced" }>;
  emitHints(hints: readonly Hint[]): void;
}

export class SqlLimits implements Limits {
  readonly #port: LimitsPort;
  readonly #dialect: LimitsDialect;
  readonly #read: LimitsPort["read"];
  readonly #turns = new TurnCounter();
  /** Up to which lane those that are not in use were removed. */
  #tidiedLane = "";

  constructor(port: LimitsPort, dialect: LimitsDialect) {
    this.#port = port;
    this.#dialect = dialect;
    this.#read = (statements) => port.read(statements);
  }

  async register(limits: readonly LimitSettings[]): Promise<void> {
    const { base } = this.#dialect;
    const statements = limits.map((limit) =>
      buildStatement(
        base,
        (bind) =>
          `INSERT INTO ${base.table("limits")} (name, settings, created_at) VALUES (${bind(limit.name)}, ${bind(encodeSettings(limit))}, ${base.now(bind)})
            ${base.onDuplicateUpdate("name")} settings = ${base.insertedValue("settings")}`,
      ),
    );
    if (statements.length > 0) await this.#port.write(statements);
  }

  async override(name: string, override: LimitOverride | null): Promise<boolean> {
    const { base } = this.#dialect;
    const isKnown = (await this.list()).some((limit) => limit.name === name);
    if (!isKnown) return false;
    const text = override === null ? null : JSON.stringify(override);
    await this.#port.write([
      buildStatement(
        base,
        (bind) => `UPDATE ${base.table("limits")} SET override = ${bind(text)} WHERE name = ${bind(name)}`,
      ),
    ]);
    return true;
  }

  unsorted(request: { readonly routes: readonly Route[]; readonly limit: number }) {
    return readUnsorted(this.#dialect, this.#read, request);
  }

  async sort(tasks: readonly SortedTask[]): Promise<SortResult> {
    if (tasks.length === 0) return { verdicts: [], hasPostponed: false };
    const { verdicts, hasPostponed, ownedRunIds, readyRoutes } = await this.#port.transact(() =>
      sortTasks(this.#dialect, this.#turns, tasks),
    );
    const hints: Hint[] = [];
    if (ownedRunIds.length > 0) hints.push({ kind: "messages", runIds: ownedRunIds });
    if (readyRoutes.length > 0) hints.push({ kind: "ready", workflows: readyRoutes });
    if (hints.length > 0) this.#port.emitHints(hints);
    return { verdicts, hasPostponed };
  }

  async refuse(refusals: readonly LimitRefusal[]): Promise<readonly string[]> {
    if (refusals.length === 0) return [];
    const refused = await this.#port.transact(() => refuseWaiting(this.#dialect, this.#turns, refusals));
    const workflows = [...new Set(refused.map(({ route }) => route))];
    if (workflows.length > 0) this.#port.emitHints([{ kind: "ready", workflows }]);
    return refused.map(({ runId }) => runId);
  }

  admit(request: AdmissionRequest): Promise<AdmissionResult> {
    return this.#port.underFence(request.fence, async () => {
      const rows = await this.#read(selectCandidates(this.#dialect, request));
      const candidates = decodeCandidates(rows, request.limit);
      const { answer, openedRoutes, hasWaitingSteps } = await this.#port.transact(() =>
        admitRuns(this.#dialect, this.#turns, request, candidates),
      );
      const hints: Hint[] = [];
      if (openedRoutes.length > 0) hints.push({ kind: "ready", workflows: openedRoutes });
      if (hasWaitingSteps) hints.push({ kind: "slots" });
      this.#port.emitHints(hints);
      if (hasWaitingSteps) await this.#offerIn(request.freed ?? []);
      return answer;
    });
  }

  async unsort(routes: readonly Route[]): Promise<number> {
    const classes = routes.length === 0 ? [] : await readClassesOfRoutes(this.#dialect, this.#read, routes);
    if (classes.length === 0) return 0;
    const count = await this.#port.transact(() => unsortTasks(this.#dialect, classes));
    if (count > 0)
      this.#port.emitHints([{ kind: "ready", workflows: [...new Set(classes.map(({ route }) => route))] }]);
    return count;
  }

  changeStepSlots(changes: StepSlotChanges): Promise<StepSlotResult> {
    return this.#port.underFence(changes.fence, async () => {
      const { answer, concernsOthers, readyRoutes } = await this.#port.transact(() =>
        changeStepSlots(this.#dialect, changes),
      );
      this.#tellWaiting(concernsOthers, readyRoutes);
      return answer;
    });
  }

  async offerSlots(): Promise<{ readonly at: number; readonly nextAt: number | null }> {
    for (;;) {
      const looks = await readLooks(this.#dialect, this.#read);
      if (looks.dueLanes.length === 0) return looks;
      await this.#look(looks.dueLanes);
    }
  }

  /** Offers slots of these lanes that are free, if runs wait in them that no worker executes. */
  async #offerIn(freed: readonly FreedSlots[]): Promise<void> {
    const lanes = await readParkedLanes(
      this.#dialect,
      this.#read,
      freed.map(({ lane }) => lane),
    );
    if (lanes.length > 0) await this.#look(lanes);
  }

  async #look(lanes: readonly string[]): Promise<void> {
    const { hasGranted, readyRoutes, lanesToWake } = await this.#port.transact(() => lookAtLanes(this.#dialect, lanes));
    this.#tellWaiting(hasGranted, readyRoutes);
    if (lanesToWake.length > 0) await this.wake(lanesToWake);
  }

  #tellWaiting(hasGranted: boolean, readyRoutes: readonly string[]): void {
    const hints: Hint[] = [];
    if (hasGranted) hints.push({ kind: "slots" });
    if (readyRoutes.length > 0) hints.push({ kind: "ready", workflows: readyRoutes });
    if (hints.length > 0) this.#port.emitHints(hints);
  }

  addUnits(lane: string, units: number): Promise<void> {
    return this.#port.transact(() => addUnits(this.#dialect, lane, units));
  }

  async wake(freed: readonly FreedSlots[]): Promise<number> {
    const woken = await wakeLanes(this.#dialect, (statements) => this.#port.write(statements), freed);
    const hints: Hint[] = [];
    if (woken.classCount > 0) hints.push({ kind: "ready", workflows: [] });
    if (woken.hasWaitingSteps) hints.push({ kind: "slots" });
    this.#port.emitHints(hints);
    if (woken.hasWaitingSteps) await this.#offerIn(freed);
    return woken.classCount;
  }

  async sweep(): Promise<number> {
    return this.wake(await findWakeableLanes(this.#dialect, this.#read));
  }

  async tidy(): Promise<void> {
    const write = (statements: readonly SqlText[]) => this.#port.write(statements);
    const { freed, lastLane } = await removeLeftOvers(this.#dialect, write, this.#tidiedLane);
    this.#tidiedLane = lastLane;
    await this.wake(freed);
  }

  list() {
    return readLimits(this.#dialect, this.#read);
  }

  usage(names: readonly string[], cap: number) {
    return readUsage(this.#dialect, this.#read, names, cap);
  }

  lanes(limit: string, page: Parameters<Limits["lanes"]>[1]) {
    return readLanes(this.#dialect, this.#read, limit, page);
  }

  holders(lanes: readonly string[], limit: number) {
    return readHolders(this.#dialect, this.#read, lanes, limit);
  }

  slots(of: Parameters<Limits["slots"]>[0], limit: number) {
    return readSlots(this.#dialect, this.#read, of, limit);
  }

  classes(of: Parameters<Limits["classes"]>[0], limit: number) {
    return readClasses(this.#dialect, this.#read, of, limit);
  }

  blockedClasses(on: Parameters<Limits["blockedClasses"]>[0], limit: number) {
    return readBlockedClasses(this.#dialect, this.#read, on, limit);
  }

  heads(runClass: Parameters<Limits["heads"]>[0], limit: number) {
    return readHeads(this.#dialect, this.#read, runClass, limit);
  }

  waiting(classIds: readonly string[], cap: number) {
    return countWaiting(this.#dialect, this.#read, classIds, cap);
  }
}
