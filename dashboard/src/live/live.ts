/**
 * Live updates: one stream of server-sent events for the whole page tells that something may have changed, and everything
 * that is shown is read again. The stream is closed while the page is hidden or updates are switched off. While the stream
 * is broken, the page polls.
 */
import { effect, signal } from "@preact/signals";
import { apiUrl } from "../api/api.js";
import { connection } from "../api/connection.js";
import { refreshShown } from "../api/queries.js";

const pollMs = 5_000;

export type LiveState = "live" | "connecting" | "polling" | "off";

export const liveState = signal<LiveState>("connecting");
/** Whether the person has switched live updates off. */
export const isPaused = signal(false);

let stream: EventSource | null = null;
let pollTimer: number | undefined;

function open(): void {
  if (stream !== null) return;
  liveState.value = "connecting";
  stream = new EventSource(apiUrl("v1/changes"));
  stream.addEventListener("open", () => {
    liveState.value = "live";
    stopPolling();
  });
  stream.addEventListener("change", () => refreshShown());
  stream.addEventListener("error", () => {
    // A browser reconnects by itself unless the server refused the stream.
    liveState.value = "polling";
    startPolling();
  });
}

function close(): void {
  stream?.close();
  stream = null;
  stopPolling();
}

function startPolling(): void {
  if (pollTimer !== undefined) return;
  pollTimer = window.setInterval(() => {
    refreshShown();
    if (stream?.readyState === EventSource.CLOSED) {
      stream = null;
      open();
    }
  }, pollMs);
}

function stopPolling(): void {
  window.clearInterval(pollTimer);
  pollTimer = undefined;
}

/** Begins live updates, which follow the visibility of the page and the switch of the person from now on. */
export function startLive(): void {
  const isVisible = signal(document.visibilityState === "visible");
  document.addEventListener("visibilitychange", () => {
    isVisible.value = document.visibilityState === "visible";
  });
  effect(() => {
    if (isPaused.value || !isVisible.value || connection.value === "signed-out") {
      close();
      liveState.value = "off";
    } else {
      open();
      refreshShown();
    }
  });
}
