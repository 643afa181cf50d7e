/** `pawl/testing`: virtual time, crash tests at every commit, and the conformance suite for stores. */

export { type CrashTestOptions, type CrashTestReport, crashTest } from "./crash-test.js";
export { type StoreHarness, storeSuite } from "./store-suite/index.js";
export { type SpeedrunOptions, TestPawl, type TestPawlOptions, testPawl } from "./test-pawl.js";
export { VirtualClock } from "./virtual-clock.js";
