import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { MemoryStore } from "../../src/store/memory/index.js";
import { storeSuite } from "../../src/testing/store-suite/index.js";
import { sized } from "../support/effort.js";

storeSuite({
  name: "memory",
  runner: { afterAll, afterEach, beforeAll, describe, expect, test },
  fresh: async () => {},
  open: async (options) => new MemoryStore(options),
  sharesAcrossInstances: false,
  notifiesAcrossInstances: false,
  hasMigrations: false,
  effort: sized(25, 100) / 100,
  dispose: async () => {},
});
