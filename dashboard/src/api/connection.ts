/** Whether the server answers, and whether it still knows this browser. The shell shows it above every screen. */
import { signal } from "@preact/signals";

/** `lost`: no answer. `signed-out`: the server asks for a login. */
export type Connection = "ok" | "lost" | "signed-out";

export const connection = signal<Connection>("ok");

export function noteAnswer(): void {
  if (connection.value !== "ok") connection.value = "ok";
}

/** @param status the status of the answer; 0 if there was none */
export function noteFailure(status: number): void {
  if (status === 401) connection.value = "signed-out";
  else if (status === 0 || status === 502 || status === 503 || status === 504) connection.value = "lost";
}
