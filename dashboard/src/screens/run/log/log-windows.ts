/**
 * The events of a run, read in windows as they are needed and then kept: an event never changes. Only the last window is
 * read again, when the log has grown.
 */
import { type Signal, signal } from "@preact/signals";
import { type Answer, type ApiError, apiUrl, getJson, runPath } from "../../../api/api.js";

export type RunEvent = Answer<"getRunHistory">["events"][number];

export const windowSize = 200;
/** Details of events that are larger are read when the event is opened. */
const maxPayload = 2_000;

type Window = { readonly events: readonly RunEvent[] } | { readonly error: ApiError };

export class LogWindows {
  readonly runId: string;
  /** Changes when more events have been read. */
  readonly version: Signal<number> = signal(0);
  readonly #windows = new Map<number, Window>();
  readonly #loading = new Set<number>();

  constructor(runId: string) {
    this.runId = runId;
  }

  /** The event with this number, if it has been read. */
  event(seq: number): RunEvent | undefined {
    const window = this.#windows.get(windowOf(seq));
    if (window === undefined || "error" in window) return undefined;
    const event = window.events[(seq - 1) % windowSize];
    return event?.seq === seq ? event : window.events.find((one) => one.seq === seq);
  }

  /** Why the window of this event could not be read; null if it could, or has not been asked for. */
  errorAt(seq: number): ApiError | null {
    const window = this.#windows.get(windowOf(seq));
    return window !== undefined && "error" in window ? window.error : null;
  }

  /** All events that have been read, in order. */
  *loaded(): Iterable<RunEvent> {
    for (const index of [...this.#windows.keys()].sort((a, b) => a - b)) {
      const window = this.#windows.get(index) as Window;
      if ("events" in window) yield* window.events;
    }
  }

  get loadedCount(): number {
    let count = 0;
    for (const window of this.#windows.values()) if ("events" in window) count += window.events.length;
    return count;
  }

  /** Reads the windows of these events that have not been read, or have grown. */
  async load(firstSeq: number, lastSeq: number, total: number): Promise<void> {
    const reads: Promise<void>[] = [];
    const last = windowOf(Math.min(lastSeq, total));
    for (let index = windowOf(Math.max(1, firstSeq)); index <= last; index += 1)
      if (!this.#isComplete(index, total) && !this.#loading.has(index)) reads.push(this.#read(index));
    await Promise.all(reads);
  }

  /** Forgets that the window of this event could not be read, and reads it again. */
  async retry(seq: number, total: number): Promise<void> {
    this.#windows.delete(windowOf(seq));
    await this.load(seq, seq, total);
  }

  /** The lowest event that has not been read; null: all have been. */
  firstMissing(total: number): number | null {
    for (let index = 0; index <= windowOf(total); index += 1)
      if (!this.#windows.has(index)) return index * windowSize + 1;
    return null;
  }

  #isComplete(index: number, total: number): boolean {
    const window = this.#windows.get(index);
    if (window === undefined) return false;
    return "error" in window || window.events.length >= Math.min(windowSize, total - index * windowSize);
  }

  async #read(index: number): Promise<void> {
    this.#loading.add(index);
    try {
      const query = { after: index * windowSize, limit: windowSize, maxPayload };
      const url = apiUrl(runPath(this.runId, "history"), query);
      this.#windows.set(index, { events: (await getJson<Answer<"getRunHistory">>(url)).events });
    } catch (error) {
      // What was read before is kept: the connection may be lost for a moment.
      if (!this.#windows.has(index)) this.#windows.set(index, { error: error as ApiError });
    } finally {
      this.#loading.delete(index);
      this.version.value += 1;
    }
  }
}

const windowOf = (seq: number): number => Math.floor(Math.max(0, seq - 1) / windowSize);

let latest: LogWindows | null = null;

/** The windows of a run; those of the run that was shown last are kept, so that tabs share them. */
export function logOf(runId: string): LogWindows {
  if (latest?.runId !== runId) latest = new LogWindows(runId);
  return latest;
}

/** The whole details of an event whose details were left out because of their size. */
export async function readEventData(runId: string, seq: number): Promise<unknown> {
  const url = apiUrl(runPath(runId, "history"), { after: seq - 1, limit: 1 });
  return (await getJson<Answer<"getRunHistory">>(url)).events[0]?.data;
}
