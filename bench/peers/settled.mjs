// For a contender that does not notify its own process when a run is over.

import { setTimeout as sleep } from "node:timers/promises";
import { seen } from "./handlers.mjs";

/**
 * Resolves when this many handlers of this name have returned and the store says that no run is open. The store is read
 * only then, because constant polling would show in the figures.
 */
export async function settled(name, expected, countOpen) {
  while ((seen.returned.get(name) ?? 0) < expected) await sleep(1);
  while ((await countOpen()) > 0) await sleep(1);
}
