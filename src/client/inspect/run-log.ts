/** Reads logs: the stored events and, for a run that has ended, the terminal event, which is made from its row. */
import { terminalEventOf } from "../../core/run/terminal-event.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";

export async function readLog(store: Store, run: RunRecord): Promise<readonly StoredEvent[]> {
  return withEndEvent(run, (await store.logs([run.id])).get(run.id) ?? []);
}

/** Appends the terminal event if the run has ended. Read `run` before `events`, so that no event is missing before it. */
export function withEndEvent(run: RunRecord, events: readonly StoredEvent[]): readonly StoredEvent[] {
  const endEvent = terminalEventOf(run, events.at(-1)?.seq ?? 0);
  return endEvent === null ? events : [...events, endEvent];
}

/** Reads a page of the log: at most `limit` events after the event with the number `after`. */
export async function readLogPage(
  store: Store,
  run: RunRecord,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly StoredEvent[]> {
  const events = await store.log(run.id, { after, limit });
  if (events.length === limit || run.finishedAt === null) return events;
  if (events.length > 0 || after === 0) return withEndEvent(run, events);
  // No stored event is left. The terminal event has the number after the last stored event, so read that event, append the
  // terminal event and drop the stored one. If `after` is the terminal event itself, nothing is found and the page is empty.
  const last = await store.log(run.id, { after: after - 1, limit: 1 });
  return withEndEvent(run, last).slice(1);
}
