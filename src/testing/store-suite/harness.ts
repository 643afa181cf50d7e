/**
 * What the conformance suite needs to know about a store and about the test runner.
 *
 * The harness contains the runner's functions, because the suite is part of the published library and imports no test
 * runner. Flags say what a store cannot do; the suite leaves those tests out.
 */
import type { Store, StoreOptions } from "../../store/contract/store.js";

/** The assertions the suite uses; those of vitest and jest have this shape. */
export interface Assertions {
  readonly not: Assertions;
  toBe(expected: unknown): void;
  toEqual(expected: unknown): void;
  toMatchObject(expected: object): void;
  toContain(expected: unknown): void;
  toHaveLength(expected: number): void;
  toBeNull(): void;
  toBeGreaterThan(expected: number): void;
  toBeGreaterThanOrEqual(expected: number): void;
  toBeLessThan(expected: number): void;
  toBeLessThanOrEqual(expected: number): void;
}

/** `describe`, `test`, `expect` and the hooks of the caller's test runner. */
export interface TestRunner {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>, timeoutMs?: number): void;
  expect(actual: unknown, message?: string): Assertions;
  beforeAll(hook: () => Promise<void>): void;
  afterAll(hook: () => Promise<void>): void;
  afterEach(hook: () => Promise<void>): void;
}

/**
 * Lets the tests write application rows in the same transaction as Pawl's rows. The rows are single text values, in a table
 * that `fresh` has created.
 */
export interface TransactionHarness {
  /** Writes one value with a `StoreTransaction.handle` or with the `tx` of `beginCallerTransaction()`. */
  write(handle: unknown, value: string): Promise<void>;
  /** The values that are committed, in any order. */
  committedValues(): Promise<readonly string[]>;
  /** Opens a transaction on a connection that does not belong to the store. */
  beginCallerTransaction(): Promise<{ readonly tx: unknown; commit(): Promise<void>; rollback(): Promise<void> }>;
}

/** What `storeSuite` needs to test your store. */
export interface StoreHarness {
  /** The name of the store, for the names of the tests. */
  readonly name: string;
  /** The functions of your test runner: those of vitest and jest fit. */
  readonly runner: TestRunner;
  /** Creates a new, empty database without Pawl's tables. All instances on the previous one are closed by then. */
  fresh(): Promise<void>;
  /** Opens another instance on the current database; the suite migrates and closes it. */
  open(options?: StoreOptions): Promise<Store>;
  /** Whether two instances see the same data. If not, tests that need two instances use one. */
  readonly sharesAcrossInstances: boolean;
  /** Whether a watcher of one instance gets hints about the commits of another. */
  readonly notifiesAcrossInstances: boolean;
  /** Whether an empty database has pending migrations. */
  readonly hasMigrations: boolean;
  /**
   * How often tests of random operations and of concurrent writers repeat, as a share of what they do without it: 0.3 for a store
   * whose tests run many times a day. Default 1.
   */
  readonly effort?: number;
  /** Leave it out if `beginTransaction` gives no handle to write with and `startInTransaction` is not possible. */
  readonly transactions?: TransactionHarness;
  /** Removes everything that `fresh` has created. */
  dispose(): Promise<void>;
}
