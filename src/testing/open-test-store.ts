/** Opens the database of a test with the test's clock: any URL that `connect` takes; default: memory. */
import { openStore } from "../connect.js";
import type { Store } from "../store/contract/store.js";
import type { VirtualClock } from "./virtual-clock.js";

export interface TestDatabaseOptions {
  readonly store?: string;
  readonly schema?: string;
}

export function openTestStore({ store, schema }: TestDatabaseOptions, clock: VirtualClock): Promise<Store> {
  return openStore(store ?? "memory:", { clock: clock.read, ...(schema === undefined ? {} : { schema }) });
}
