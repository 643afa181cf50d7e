/** `Limits` of the SQL stores. */
import { TurnCounter } from "../../../core/limits/order.js";
import type {
  AdmissionRequest,
  AdmissionResult,
  FreedSlots,
  LimitSettings,
  Limits,
  SortedTask,
} from "../../contract/limits.js";
import type { Hint, Route } from "../../contract/store.js";
import type { SqlRow } from "../dialect.js";
import { admitRuns } from "./admit.js";
import { buildStatement, type LimitsDialect, type SqlText, type TransactionSteps } from "./dialect.js";
import { countWaiting, readClasses, readLanes, readLimits, readSlots, readUnsorted } from "./reads.js";
import { sortTasks } from "./sort.js";
import { findWakeableLanes, wakeLanes } from "./wake.js";

/** What a store provides. */
export interface LimitsPort {
  /** Executes statements that only read. */
  read(statements: readonly SqlText[]): Promise<readonly (readonly SqlRow[])[]>;
  /** Executes statements that each commit by themselves; executing them twice does no harm. */
  write(statements: readonly SqlText[]): Promise<readonly (readonly SqlRow[])[]>;
  /** Takes the steps in one transaction, which may be tried again from the beginning. */
  transact<R>(begin: () => TransactionSteps<R>): Promise<R>;
  /** Wraps an admission: a store may know that a fence is not valid any more, whatever the database says. */
  admitUnder(request: AdmissionRequest, admit: () => Promise<AdmissionResult>): Promise<AdmissionResult>;
  emitHints(hints: readonly Hint[]): void;
}

export class SqlLimits implements Limits {
  readonly #port: LimitsPort;
  readonly #dialect: LimitsDialect;
  readonly #read: LimitsPort["read"];
  readonly #turns = new TurnCounter();

  constructor(port: LimitsPort, dialect: LimitsDialect) {
    this.#port = port;
    this.#dialect = dialect;
    this.#read = (statements) => port.read(statements);
  }

  async register(limits: readonly LimitSettings[]): Promise<void> {
    const { base } = this.#dialect;
    const statements = limits.map(({ name, concurrency }) =>
      buildStatement(
        base,
        (bind) =>
          `INSERT INTO ${base.table("limits")} (name, concurrency, created_at) VALUES (${bind(name)}, ${bind(concurrency)}, ${base.now(bind)})
            ${base.onDuplicateUpdate("name")} concurrency = ${base.insertedValue("concurrency")}`,
      ),
    );
    if (statements.length > 0) await this.#port.write(statements);
  }

  unsorted(request: { readonly routes: readonly Route[]; readonly limit: number }) {
    return readUnsorted(this.#dialect, this.#read, request);
  }

  async sort(tasks: readonly SortedTask[]): Promise<void> {
    if (tasks.length > 0) await this.#port.transact(() => sortTasks(this.#dialect, this.#turns, tasks));
  }

  admit(request: AdmissionRequest): Promise<AdmissionResult> {
    return this.#port.admitUnder(request, () =>
      this.#port.transact(() => admitRuns(this.#dialect, this.#turns, request)),
    );
  }

  async wake(freed: readonly FreedSlots[]): Promise<number> {
    const wokenCount = await wakeLanes(this.#dialect, (statements) => this.#port.write(statements), freed);
    if (wokenCount > 0) this.#port.emitHints([{ kind: "ready", workflows: [] }]);
    return wokenCount;
  }

  async sweep(): Promise<number> {
    return this.wake(await findWakeableLanes(this.#dialect, this.#read));
  }

  list() {
    return readLimits(this.#dialect, this.#read);
  }

  lanes(limit: string, page: { readonly after: string | null; readonly limit: number }) {
    return readLanes(this.#dialect, this.#read, limit, page);
  }

  slots(of: Parameters<Limits["slots"]>[0], limit: number) {
    return readSlots(this.#dialect, this.#read, of, limit);
  }

  classes(of: Parameters<Limits["classes"]>[0], limit: number) {
    return readClasses(this.#dialect, this.#read, of, limit);
  }

  waiting(classIds: readonly string[], cap: number) {
    return countWaiting(this.#dialect, this.#read, classIds, cap);
  }
}
