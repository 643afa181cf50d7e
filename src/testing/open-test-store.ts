/** The database of a test: any that `connect` takes, memory unless it says otherwise, on the test's clock. */
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
