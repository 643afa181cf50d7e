/**
 * Pawl on a test database with a meter in between: it performs an operation, waits until everything is idle, and
 * reports the cost.
 */
import { type AnyWorkflow, Pawl, type Worker } from "pawl";
import { VirtualClock } from "pawl/testing";
import { vi } from "vitest";
import type { Store } from "../../src/store/contract/store.js";
import { emptyDatabase, openStore, type StoreKind, type TestDatabase } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import type { Cost } from "./gate.js";
import { ObservedStore } from "./observed-store.js";
import { type SentStatements, watchStatements } from "./sent-statements.js";
import { ShortTimers } from "./short-timers.js";
import { WrittenRows } from "./written-rows.js";

/** Wraps the store below the meter, to test that the meter notices. */
export type StoreWrapper = (store: Store) => Store;

/** The number of event loop turns without pending work; the engine defers work by one or two turns. */
const idleTurns = 20;

interface Parts {
  readonly kind: StoreKind;
  readonly database: TestDatabase;
  readonly clock: VirtualClock;
  readonly observed: ObservedStore;
  readonly sent: SentStatements;
  readonly written: WrittenRows | null;
}

export class Meter {
  readonly kind: StoreKind;
  readonly clock: VirtualClock;
  readonly observed: ObservedStore;
  /** What the last measured operation sent and wrote, for debugging. */
  sentAndWritten: readonly string[] = [];
  readonly #parts: Parts;
  readonly #timers = new ShortTimers();
  #worker: Worker | null = null;
  #names = 0;

  /**
   * Clocks stand still and nothing is triggered by time: no polls, no heartbeats, no slow steps. The counts are
   * therefore the same on a busy machine and on an idle one.
   */
  static async open(kind: StoreKind, around: StoreWrapper = (store) => store): Promise<Meter> {
    const database = await emptyDatabase(kind);
    try {
      return await Meter.#on(kind, database, around);
    } catch (error) {
      await database.drop();
      throw error;
    }
  }

  static async #on(kind: StoreKind, database: TestDatabase, around: StoreWrapper): Promise<Meter> {
    const written = await countRows(kind, database.url);
    const sent = await watchStatements(kind);
    const clock = new VirtualClock();
    vi.spyOn(Date, "now").mockImplementation(clock.read);
    vi.spyOn(performance, "now").mockReturnValue(performance.now());
    // SQLite watches its file for writes of other processes; here those would only be the counting of rows.
    const store = await openStore(kind, database.url, { clock: clock.read, notify: kind === "postgres" });
    const observed = new ObservedStore(around(store));
    if (kind === "postgres") await observed.heard;
    return new Meter({ kind, database, clock, observed, sent, written });
  }

  private constructor(parts: Parts) {
    this.kind = parts.kind;
    this.clock = parts.clock;
    this.observed = parts.observed;
    this.#parts = parts;
    this.#timers.watch();
  }

  /** What the operation costs, without anything left over from earlier measurements. */
  async measure(thing: (meter: Meter) => Promise<Cost>): Promise<Cost> {
    await this.#worker?.stop();
    this.#worker = null;
    this.observed.releaseHints();
    return thing(this);
  }

  /** A client in the process of a worker for these workflows, and a client as in another process. */
  async serve(workflows: readonly AnyWorkflow[]): Promise<{ readonly pawl: Pawl; readonly client: Pawl }> {
    const pawl = new Pawl(this.observed.store, silent);
    const options = { name: "worker", poll: Number.POSITIVE_INFINITY, lease: "1 day", grace: 0 } as const;
    this.#worker = await pawl.worker({ workflows, ...options }).start();
    await this.untilIdle();
    return { pawl, client: new Pawl(this.observed.store, silent) };
  }

  /** A workflow name that was not used before, always of the same length, because the bytes of names are counted. */
  newName(): string {
    this.#names += 1;
    return `workflow_${String(this.#names).padStart(3, "0")}`;
  }

  /** The cost of `work` and of everything that it triggers. */
  async cost(work: () => unknown): Promise<Cost> {
    await this.untilIdle();
    await this.#parts.written?.take();
    this.observed.calls.clear();
    this.#parts.sent.clear();
    await work();
    await this.untilIdle();
    return this.#read();
  }

  /** Resolves when the worker has released all its runs. */
  async untilReleased(): Promise<void> {
    do await this.untilIdle();
    while ((this.#worker?.active ?? 0) > 0);
  }

  async close(): Promise<void> {
    await this.#worker?.stop();
    await this.observed.store.close();
    await this.#parts.written?.close();
    await this.#parts.database.drop();
    this.#timers.unwatch();
    vi.restoreAllMocks();
  }

  /** Resolves when nothing is pending any more. */
  async untilIdle(): Promise<void> {
    for (let turns = 0; turns < idleTurns; turns += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.observed.pending + this.#parts.sent.pending + this.#timers.pending > 0) turns = -1;
    }
  }

  async #read(): Promise<Cost> {
    const { sent, written } = this.#parts;
    const cost: Record<string, number> = {};
    for (const [name, times] of this.observed.calls) cost[`calls of ${name}`] = times;
    if (written === null) return cost;
    const statements = [...sent.texts];
    cost.statements = statements.length;
    if (this.kind === "mysql") cost.packets = sent.packets;
    const rows = await written.take();
    for (const { what } of rows) cost[what] = (cost[what] ?? 0) + 1;
    cost.bytes = rows.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
    this.sentAndWritten = [...statements, ...rows.map(({ what, text }) => `${what}: ${text}`)];
    return cost;
  }
}

async function countRows(kind: StoreKind, url: string): Promise<WrittenRows | null> {
  if (kind === "memory") return null;
  const store = await openStore(kind, url);
  await store.migrate();
  await store.close();
  return WrittenRows.of(kind, url);
}
