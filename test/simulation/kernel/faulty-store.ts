/**
 * The store as one simulated process sees it. Each call is two events: it takes effect in the database, and its answer reaches the process. Before, between
 * and after them anything may happen: other calls, faults, the death of the process.
 */
import { StoreError, TransactionError } from "../../../src/core/errors/errors.js";
import type { GatherCall, GatherResult } from "../../../src/store/contract/gatherings.js";
import type { StepSlotChanges, StepSlotResult } from "../../../src/store/contract/limits.js";
import type {
  Batch,
  ClaimResult,
  CommitResult,
  Fence,
  HeartbeatResult,
  Hint,
  Store,
  StoreTransaction,
} from "../../../src/store/contract/store.js";
import { describeBatch, describeResult } from "./describe.js";
import type { CallFault, Faults } from "./faults.js";
import type { Journal } from "./journal.js";
import type { Random } from "./random.js";
import type { Scheduler } from "./scheduler.js";
import type { SimProcess } from "./sim-process.js";
import { type UserHandle, type UserRow, type UserTable, UserTransaction } from "./user-table.js";

/** How long a connection waits for an answer, like `store/shared/statement-deadline.ts`. */
const deadlineMs = 2_500;
/** How long a server may go on with a call after its connection has failed; the lease of the workers is not shorter. */
const latestMs = 3_000;

/** After these calls the slots of limits may be others. */
const changesSlots: ReadonlySet<string> = new Set([
  ...["commit", "heartbeat", "registerWorker", "deregisterWorker"],
  ...["limits.admit", "limits.changeStepSlots", "limits.offerSlots", "limits.wake", "limits.sweep", "limits.tidy"],
]);
const changesLimits: ReadonlySet<string> = new Set(["limits.register", "limits.override"]);

export interface FaultyStoreOptions {
  readonly inner: Store;
  readonly process: SimProcess;
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly random: Random;
  readonly journal: Journal;
  readonly userTable: UserTable;
  readonly hasCrossProcessHints: boolean;
}

interface Delivery {
  readonly isLate: boolean;
  readonly isUnanswered: boolean;
}

export class FaultyStore {
  readonly store: Store;
  /** The fence under which the database last registered a worker of this process. */
  fence: Fence | null = null;
  /** Transactions that the process has begun and neither committed nor rolled back. */
  openTransactions = 0;
  /** Listeners for hints that the process has not removed. */
  listenerCount = 0;
  readonly #options: FaultyStoreOptions;
  /** Whether the call that takes effect now is one that the process was told had failed. */
  #isLate = false;
  /** Whether the process will be told that the call that takes effect now has failed. */
  #isUnanswered = false;

  constructor(options: FaultyStoreOptions) {
    this.#options = options;
    this.store = this.#facade(options.inner, "");
  }

  /** An object whose methods are calls over the simulated network; objects within it (`limits`, `maintenance`) as well. */
  #facade<T extends object>(inner: T, path: string): T {
    const members = new Map<string | symbol, unknown>();
    return new Proxy(inner, {
      get: (target, name) => {
        if (members.has(name)) return members.get(name);
        const member = this.#member(target, name, path);
        members.set(name, member);
        return member;
      },
    });
  }

  #member(target: object, name: string | symbol, path: string): unknown {
    if (path === "") {
      if (name === "watch") return (listener: (hint: Hint) => void) => this.#watch(listener);
      if (name === "close") return async () => {};
      if (name === "hasCrossProcessHints") return this.#options.hasCrossProcessHints;
      if (name === "beginTransaction") return () => this.#beginTransaction();
    }
    const value = Reflect.get(target, name) as unknown;
    const fullName = path + String(name);
    if (typeof value === "object" && value !== null) return this.#facade(value, `${fullName}.`);
    if (typeof value !== "function") return value;
    return (...args: unknown[]) =>
      this.#call(fullName, args, async () => {
        const delivery = this.#delivery;
        const answer: unknown = await Reflect.apply(value, target, args);
        this.#note(fullName, args, answer, delivery);
        if (changesSlots.has(fullName)) await this.#noteSlots();
        else if (changesLimits.has(fullName)) await this.#noteLimits();
        return answer;
      });
  }

  #call<T>(name: string, args: readonly unknown[], effect: () => Promise<T>): Promise<T> {
    const { process, scheduler, random, faults } = this.#options;
    const fault = faults.ofCall();
    const requestMs = 0.05 + random.next() ** 3 * 4 + (fault === "slow" ? random.between(200, 4_000) : 0);
    const answerMs = 0.05 + random.next() ** 3 * 4 + (fault === "stale-answer" ? random.between(100, 2_000) : 0);
    const reachesServerAfterCrash = random.chance(0.5);
    const takesEffectUnanswered = random.chance(0.5);
    const label = args.length > 0 && name.endsWith("commit") ? describeBatch(name, args[0] as Batch) : name;
    return new Promise<T>((resolve, reject) => {
      const answer = (delayMs: number, text: string, settle: () => void) =>
        void scheduler.schedule(process, delayMs, `${text} ${name}`, settle);
      const fail = (delayMs: number) => answer(delayMs, "error of", () => reject(faultError(fault ?? "error")));
      const takeEffect = (andThen: (result: T) => void) => {
        if (!process.isAlive && !reachesServerAfterCrash) return;
        this.#isUnanswered = fault === "lost-answer" || fault === "unanswered";
        const done = effect();
        this.#isLate = false;
        done.then(andThen, (error: unknown) => answer(answerMs, "refusal of", () => reject(error)));
      };
      const arrive = () => {
        switch (fault) {
          case "error":
          case "deadlock":
            return fail(answerMs);
          case "lost-answer":
            return takeEffect(() => fail(answerMs));
          case "late-commit":
            fail(answerMs);
            return void scheduler.schedule(null, answerMs + random.next() ** 2 * latestMs, `late ${label}`, () => {
              this.#isLate = true;
              takeEffect(() => {});
            });
          case "unanswered":
            if (takesEffectUnanswered) takeEffect(() => {});
            return fail(deadlineMs);
          default:
            takeEffect((result) => answer(answerMs, "answer of", () => resolve(result)));
        }
      };
      scheduler.schedule(null, requestMs, `${process.name} ${fault === null ? "" : `${fault}! `}${label}`, arrive);
    });
  }

  /** What the process learns of the call that takes effect now; it must be read before the call. */
  get #delivery(): Delivery {
    return { isLate: this.#isLate, isUnanswered: this.#isUnanswered };
  }

  /** Writes down what the checker needs of a call that has taken effect. */
  #note(name: string, args: readonly unknown[], answer: unknown, delivery: Delivery): void {
    const { journal, process } = this.#options;
    if (name === "commit") this.#noteCommit(name, args[0] as Batch, answer as CommitResult, delivery);
    else if (name === "registerWorker") {
      this.fence = answer as Fence;
      journal.add(process.name, { kind: "registered", fence: this.fence });
    } else if (name === "claim" || name === "limits.admit") {
      const { fence } = args[0] as { fence: Fence };
      const claim = answer as Pick<Extract<ClaimResult, { kind: "claimed" }>, "tasks"> & { kind: string };
      if (claim.kind === "fenced") journal.add(process.name, { kind: "fenced", call: name, fence });
      else if (claim.tasks.length > 0)
        journal.add(process.name, {
          kind: "claimed",
          fence,
          runIds: claim.tasks.map(({ run }) => run.id),
          deliveries: claim.tasks.map(({ deliveries }) => deliveries),
        });
    } else if (name === "deregisterWorker") {
      const { workerId, epoch } = args[0] as Fence;
      // A fence that is not valid any more frees nothing.
      if (epoch === journal.epochOf(workerId)) journal.add(process.name, { kind: "freed", workerIds: [workerId] });
    } else if (name === "heartbeat") {
      const { isAlive, reapedWorkerIds } = answer as HeartbeatResult;
      if (!isAlive) journal.add(process.name, { kind: "fenced", call: name, fence: args[0] as Fence });
      if (reapedWorkerIds.length > 0) journal.add(process.name, { kind: "freed", workerIds: reapedWorkerIds });
    } else if (name === "limits.changeStepSlots") {
      const { asked, fence } = args[0] as StepSlotChanges;
      if ((answer as StepSlotResult).kind === "fenced")
        journal.add(process.name, { kind: "fenced", call: name, fence });
      else if (asked.length > 0) journal.add(process.name, { kind: "asked", steps: asked });
    } else if (name === "gatherings.gather") {
      const inputs = (args[0] as readonly GatherCall[]).map(({ run }) => run.input);
      if ((answer as GatherResult).kind === "gathered") journal.add(process.name, { kind: "gathered", inputs });
    } else if (name === "limits.wake" || name === "limits.sweep") {
      if ((answer as number) > 0) journal.add(process.name, { kind: "woken", count: answer as number });
    }
  }

  async #noteSlots(): Promise<void> {
    const { inner, journal, process } = this.#options;
    journal.addSlots(process.name, await inner.limits.slots({ afterRunId: null }, Number.MAX_SAFE_INTEGER));
  }

  async #noteLimits(): Promise<void> {
    const { inner, journal, process } = this.#options;
    journal.add(process.name, { kind: "limits", limits: await inner.limits.list() });
  }

  #noteCommit(call: string, batch: Batch, result: CommitResult, delivery: Delivery): void {
    const { journal, process, scheduler } = this.#options;
    if (result.kind === "fenced") journal.add(process.name, { kind: "fenced", call, fence: batch.fence as Fence });
    journal.add(process.name, { kind: "commit", batch, result, ...delivery });
    const remark = describeResult(result);
    if (remark !== null) scheduler.trace.add(scheduler.now, "·", `  ${remark}`);
  }

  #watch(listener: (hint: Hint) => void): () => void {
    const { inner, process, scheduler, faults, random } = this.#options;
    let isWatching = true;
    this.listenerCount += 1;
    const deliver = (delayMs: number, hint: Hint) =>
      void scheduler.schedule(process, delayMs, `hint ${hint.kind}`, () => isWatching && listener(hint));
    const unwatch = inner.watch((hint) => {
      if (!process.isAlive) return unwatch();
      const fault = faults.ofHint();
      const delayMs = 0.05 + random.next() ** 3 * 8;
      if (fault === "lost-hint") return;
      deliver(delayMs + (fault === "late-hint" ? random.between(100, 5_000) : 0), hint);
      if (fault === "doubled-hint") deliver(delayMs + random.between(0, 200), hint);
    });
    return () => {
      if (isWatching) this.listenerCount -= 1;
      isWatching = false;
      unwatch();
    };
  }

  async #beginTransaction(): Promise<StoreTransaction> {
    const { inner, userTable } = this.#options;
    const begin = async () => new UserTransaction(userTable, await inner.beginTransaction());
    const transaction = await this.#call("begin", [], begin);
    this.openTransactions += 1;
    let isOpen = true;
    const end = () => {
      if (isOpen) this.openTransactions -= 1;
      isOpen = false;
    };
    return {
      handle: {
        insert: async (row: UserRow) => {
          if (!isOpen) throw new TransactionError("The transaction has ended.");
          return this.#call("insert", [], async () => transaction.insert(row));
        },
        doom: () => transaction.doom(),
      } satisfies UserHandle,
      commit: (batch) => {
        end();
        return this.#call("transaction.commit", [batch], async () => {
          const delivery = this.#delivery;
          const result = await transaction.commit(batch);
          this.#noteCommit("transaction.commit", batch, result, delivery);
          await this.#noteSlots();
          return result;
        });
      },
      rollback: async () => {
        // A COMMIT that was sent cannot be taken back, although its answer was lost.
        if (isOpen) transaction.end();
        end();
      },
    };
  }
}

function faultError(fault: CallFault): StoreError {
  return new StoreError(`A simulated fault: ${fault}.`, { transient: true, unreachable: fault !== "deadlock" });
}
