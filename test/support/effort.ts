/**
 * How much the tests repeat. `npm test` has short forms of campaigns and random tests; `npm run test:long` has more rounds, more runs
 * and every store, for changes of what these tests are about.
 */
import { type AnyStoreKind, chosenStore, everyStore, forEachStore, type StoreKind, storeKinds } from "./databases.js";

const isLong = process.env.PAWL_TEST_LONG === "1";

/** A count in `npm test`, and in `npm run test:long`. */
export const sized = (short: number, long: number): number => (isLong ? long : short);

/**
 * Whether a test of behaviour that only needs the contract of stores, to which the conformance suite holds each of them, runs on this
 * one: on the named stores in `npm test`, on all in `npm run test:long`, and on one that was chosen.
 */
export const isAmong = (kind: AnyStoreKind, ...brief: readonly StoreKind[]): boolean =>
  isLong || chosenStore !== null || (brief as readonly AnyStoreKind[]).includes(kind);

/** The stores on which `isAmong` lets such a test run, for `forEachStore`. */
export const briefly = (...brief: readonly StoreKind[]): readonly StoreKind[] =>
  storeKinds.filter((kind) => isAmong(kind, ...brief));

/**
 * For rules that every store must obey, with many tests: on sqld only in `npm run test:long`. It executes the statements of the SQLite
 * store, the conformance suite and the traps of limits hold it to the same rules, and its server takes the most time of all.
 */
export const everyStoreBriefly: readonly AnyStoreKind[] = everyStore.filter((kind) => isAmong(kind, ...storeKinds));

/**
 * The same tests in memory and on one SQL store, and on every store in `npm run test:long`: for behaviour of the engine, which
 * sees of a store only what the conformance suite holds each of them to. Other files name another SQL store, so that each
 * store meets many of these stories.
 */
export const forMemoryAnd = (store: Exclude<StoreKind, "memory">, define: (kind: StoreKind) => void): void =>
  forEachStore(define, briefly("memory", store));
