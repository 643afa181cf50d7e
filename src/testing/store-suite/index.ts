/** The conformance suite: what every `Store` must do, by topic. */
import { claimTests } from "./claim.js";
import { clockTests } from "./clock.js";
import { commitTests } from "./commit.js";
import { concurrencyTests } from "./concurrency.js";
import { Fixture } from "./fixture.js";
import { fullLimitTests } from "./full-limits.js";
import { gatheringHistoryTests } from "./gathering-histories.js";
import { gatheringTests } from "./gatherings.js";
import { guardTests } from "./guards.js";
import type { StoreHarness } from "./harness.js";
import { hintTests } from "./hints.js";
import { inboxTests } from "./inbox.js";
import { keyChangeTests } from "./key-changes.js";
import { keyTests } from "./keys.js";
import { limitHistoryTests } from "./limit-histories.js";
import { limitModelTests } from "./limit-model-histories.js";
import { limitParkedHistoryTests } from "./limit-parked-histories.js";
import { limitParkedStepTests } from "./limit-parked-steps.js";
import { limitRateTests } from "./limit-rates.js";
import { limitStartTests } from "./limit-starts.js";
import { limitStepTests } from "./limit-steps.js";
import { limitTests } from "./limits.js";
import { logTests } from "./log.js";
import { maintenanceTests } from "./maintenance.js";
import { modelTests } from "./model.js";
import { openingTests } from "./opening.js";
import { pausedQueueTests } from "./paused-queues.js";
import { queryTests } from "./queries.js";
import { questionTests } from "./questions.js";
import { randomQuestionTests } from "./random-questions.js";
import { registryTests } from "./registry.js";
import { routingTests } from "./routing.js";
import { scheduleTests } from "./schedules.js";
import { sizeTests } from "./size.js";
import { startTests } from "./start.js";
import { startDeadlineTests } from "./start-deadlines.js";
import { transactionTests } from "./transaction.js";
import { workerTests } from "./workers.js";

export type { StoreHarness, TransactionHarness } from "./harness.js";

const topics: Record<string, (fixture: Fixture) => void> = {
  "opening and closing": openingTests,
  starting: startTests,
  "start deadlines": startDeadlineTests,
  keys: keyTests,
  "keys that change hands": keyChangeTests,
  "the log": logTests,
  committing: commitTests,
  "refused commits": guardTests,
  claiming: claimTests,
  "routes and priorities": routingTests,
  "the inbox": inboxTests,
  workers: workerTests,
  queries: queryTests,
  questions: questionTests,
  "random questions": randomQuestionTests,
  "the registry": registryTests,
  maintenance: maintenanceTests,
  sizes: sizeTests,
  "paused queues": pausedQueueTests,
  limits: limitTests,
  "starts of runs with limits": limitStartTests,
  "limits that are full": fullLimitTests,
  "limits under load": limitHistoryTests,
  "limits beside a simulation": limitModelTests,
  "rates and overrides of limits": limitRateTests,
  "limits of steps": limitStepTests,
  "limits of steps of parked runs": limitParkedStepTests,
  "limits of steps of parked runs beside the memory store": limitParkedHistoryTests,
  "gathered starts": gatheringTests,
  "gathered starts under load": gatheringHistoryTests,
  schedules: scheduleTests,
  hints: hintTests,
  transactions: transactionTests,
  "the clock": clockTests,
  concurrency: concurrencyTests,
  "the model": modelTests,
};

/**
 * Defines the tests that every store must pass, for your own store. Each topic gets a fresh database, which its tests
 * share.
 *
 * @example
 * ```ts
 * import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
 * import { MemoryStore } from "pawl/memory";
 *
 * storeSuite({
 *   name: "memory",
 *   runner: { afterAll, afterEach, beforeAll, describe, expect, test },
 *   fresh: async () => {},
 *   open: async (options) => new MemoryStore(options),
 *   dispose: async () => {},
 *   sharesAcrossInstances: false,
 *   notifiesAcrossInstances: false,
 *   hasMigrations: false,
 * });
 * ```
 */
export function storeSuite(harness: StoreHarness): void {
  const { describe, beforeAll, afterEach, afterAll } = harness.runner;
  describe(`the ${harness.name} store`, () => {
    afterAll(() => harness.dispose());
    for (const [topic, define] of Object.entries(topics)) {
      describe(topic, () => {
        const fixture = new Fixture(harness);
        beforeAll(() => fixture.setUp());
        afterEach(() => fixture.closeOtherInstances());
        afterAll(() => fixture.tearDown());
        define(fixture);
      });
    }
  });
}
