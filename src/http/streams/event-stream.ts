/** A stream of server-sent events that is read as fast as the client reads, and cleans up when the client has gone. */
import type { Runtime, Timer } from "../../runtime/runtime.js";
import type { Shutdown } from "./shutdown.js";

/** Where the events of one client come from. */
export interface EventSource {
  /** The next events as text; null: the stream is over. It is not called again before it has answered. */
  next(): Promise<string | null>;
  /** Called once, when the stream is over or the client has gone. */
  close(): void;
}

/** Proxies close connections that are silent for a minute; a comment is no event. */
const heartbeatMs = 15_000;
const heartbeat = ": still here\n\n";
/** Tells the client how long to wait before it connects again. */
const greeting = "retry: 2000\n\n";

export interface StreamEnvironment {
  readonly runtime: Runtime;
  /** Fires when the client has gone. */
  readonly signal: AbortSignal;
  readonly shutdown: Shutdown;
  /** Called with the error that has broken the stream off. */
  readonly onError: (error: unknown) => void;
}

export function eventStream(
  source: EventSource,
  { runtime, signal, shutdown, onError }: StreamEnvironment,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let pending: Promise<string | null> | null = null;
  let timer: Timer | null = null;
  let isOver = false;
  const finish = () => {
    if (isOver) return;
    isOver = true;
    runtime.clearTimeout(timer);
    signal.removeEventListener("abort", finish);
    forget();
    source.close();
  };
  const forget = shutdown.onStop(finish);
  signal.addEventListener("abort", finish, { once: true });
  // A server may drop the stream of a client that has gone before, without reading or canceling it.
  if (signal.aborted) finish();
  return new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode(greeting)),
    async pull(controller) {
      if (isOver) return controller.close();
      pending ??= source.next();
      const beat = new Promise<typeof heartbeat>((resolve) => {
        timer = runtime.setTimeout(() => resolve(heartbeat), heartbeatMs);
      });
      try {
        const chunk = await Promise.race([pending, beat]);
        runtime.clearTimeout(timer);
        if (isOver) return closeQuietly(controller);
        if (chunk !== heartbeat) pending = null;
        if (chunk !== null) return controller.enqueue(encoder.encode(chunk));
        finish();
        closeQuietly(controller);
      } catch (error) {
        if (!isOver) onError(error);
        finish();
        controller.error(error);
      }
    },
    cancel: finish,
  });
}

/** The controller is closed already if the client has gone. */
function closeQuietly(controller: ReadableStreamDefaultController<Uint8Array>): void {
  try {
    controller.close();
  } catch {
    // Nothing is left to do.
  }
}

/** One event. JSON has no line breaks, so the data is one line. */
export function formatEvent(event: { readonly id?: number; readonly event?: string; readonly data: unknown }): string {
  const id = event.id === undefined ? "" : `id: ${event.id}\n`;
  const name = event.event === undefined ? "" : `event: ${event.event}\n`;
  return `${id}${name}data: ${JSON.stringify(event.data)}\n\n`;
}
