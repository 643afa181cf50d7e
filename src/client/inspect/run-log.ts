/** Reads logs: the stored events and, for a run that has ended, the terminal event, which is made from its row. */
import { terminalEventOf } from "../../core/run/terminal-event.js";
import type { RunRecord, Store, StoredEvent } from "../../store/contract/store.js";

export async function readLog(store: Store, run: RunRecord): Promise<readonly StoredEvent[]> {
  return withEndEvent(run, (await store.logs([run.id])).get(run.id) ?? []);
}

/** `run` must have been read before `events`, so that its end, if it has one, comes after all of them. */
export function withEndEvent(run: RunRecord, events: readonly StoredEvent[]): readonly StoredEvent[] {
  const endEvent = terminalEventOf(run, events.at(-1)?.seq ?? 0);
  return endEvent === null ? events : [...events, endEvent];
}

/** A page of the log: at most `limit` events after number `after`. */
export async function readLogPage(
  store: Store,
  run: RunRecord,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly StoredEvent[]> {
  const events = await store.log(run.id, { after, limit });
  if (events.length === limit || run.finishedAt === null) return events;
  if (events.length > 0 || after === 0) return withEndEvent(run, events);
  // Only the terminal event can be left, and it is if the event before this page is the last stored one.
  const last = await store.log(run.id, { after: after - 1, limit: 1 });
  return withEndEvent(run, last).slice(1);
}
