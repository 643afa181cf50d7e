import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { MemoryStore } from "../../src/store/memory/index.js";
import { storeSuite } from "../../src/testing/store-suite/index.js";

storeSuite({
  name: "memory",
  runner: { afterAll, afterEach, beforeAll, describe, expect, test },
  fresh: async () => {},
  open: async (options) => new MemoryStore(options),
  sharesAcrossInstances: false,
  notifiesAcrossInstances: false,
  hasMigrations: false,
  dispose: async () => {},
});
