// For a contender that does not tell its own process when a run is over.

import { setTimeout as sleep } from "node:timers/promises";
import { seen } from "./handlers.mjs";

/**
 * Until so many handlers of this name have returned and the store says that no run is open. The store is asked only
 * then: asking all the time would be in the figures.
 */
export async function settled(name, expected, countOpen) {
  while ((seen.returned.get(name) ?? 0) < expected) await sleep(1);
  while ((await countOpen()) > 0) await sleep(1);
}
