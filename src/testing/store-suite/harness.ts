/**
 * What the conformance suite needs to know of a store, and of the test runner.
 *
 * The runner's functions come with the harness, typed by the shape that is used: the suite is part of the published
 * library and imports no test runner. What a store cannot do is a flag here, and the tests of it are then not defined.
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

/** How tests write rows of their own, beside Pawl's: into a table of values that `fresh` has made. */
export interface TransactionHarness {
  /** Writes one value with what `StoreTransaction.handle` or `own().tx` is. */
  write(handle: unknown, value: string): Promise<void>;
  /** The values that are committed, in any order. */
  committedValues(): Promise<readonly string[]>;
  /** Opens a transaction of the caller's own, on a connection that the store knows nothing of. */
  beginCallerTransaction(): Promise<{ readonly tx: unknown; commit(): Promise<void>; rollback(): Promise<void> }>;
}

export interface StoreHarness {
  /** In the names of the tests. */
  readonly name: string;
  readonly runner: TestRunner;
  /** Makes a new, empty database, without tables of Pawl. The instances on the one before are closed by then. */
  fresh(): Promise<void>;
  /** Opens another instance on the current database; the suite migrates and closes it. */
  open(options?: StoreOptions): Promise<Store>;
  /** Two instances see the same data. If not, the tests that need two use one. */
  readonly sharesAcrossInstances: boolean;
  /** A watcher of one instance is told of the commits of another. */
  readonly notifiesAcrossInstances: boolean;
  /** An empty database has migrations that are pending. */
  readonly hasMigrations: boolean;
  /** Absent: `begin` gives no handle to write with, and `startInTransaction` is not possible. */
  readonly transactions?: TransactionHarness;
  /** Removes what `fresh` has made. */
  dispose(): Promise<void>;
}
