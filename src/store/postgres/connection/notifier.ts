/**
 * Sends hints to other processes. NOTIFY holds a lock on the whole server until its transaction has committed, so it is
 * never part of a write. Hints are collected while one notification is being sent, and the next notification carries
 * them all.
 */

import { createHash } from "node:crypto";
import type { Runtime, Timer } from "../../../runtime/runtime.js";
import type { Hint } from "../../contract/store.js";
import type { ExecuteQuery } from "./driver.js";

/** The server's limit is 8,000 bytes. */
const maxPayloadBytes = 7_900;

/** One channel per schema; databases have separate channels anyway. Names are limited to 63 bytes, hence the hash. */
export const channelOf = (schema: string): string =>
  `pawl_${createHash("sha256").update(schema).digest("hex").slice(0, 24)}`;

/** The payload of a notification. Without `sender`, the sending process receives it, too. */
export function encodeHints(hints: readonly Hint[], sender?: string): string {
  const payload = (includedHints: readonly Hint[]) =>
    JSON.stringify(sender === undefined ? { hints: includedHints } : { sender, hints: includedHints });
  const text = payload(hints);
  return Buffer.byteLength(text) <= maxPayloadBytes ? text : payload([{ kind: "anything" }]);
}

/** Decodes a payload; the result is empty if this process sent it. An unknown payload is decoded as "anything". */
export function decodeHints(text: string, ownSenderId: string): readonly Hint[] {
  try {
    const { sender, hints } = JSON.parse(text) as { sender?: string; hints: Hint[] };
    if (sender === ownSenderId) return [];
    return hints.map((hint) => (isKnownHint(hint) ? hint : { kind: "anything" }));
  } catch {
    return [{ kind: "anything" }];
  }
}

function isKnownHint(hint: Hint): boolean {
  if (hint.kind === "ready") return Array.isArray(hint.workflows);
  return (
    hint.kind === "anything" ||
    hint.kind === "schedules" ||
    (hint.kind === "startDeadline" && typeof hint.inMs === "number") ||
    hint.kind === "slots" ||
    ((hint.kind === "messages" || hint.kind === "done") && Array.isArray(hint.runIds))
  );
}

export class Notifier {
  readonly #execute: ExecuteQuery;
  readonly #runtime: Runtime;
  readonly #channel: string;
  readonly #sender: string;
  readonly #onWarning: (message: string, error: unknown) => void;
  #pendingHints = new HintBuffer();
  #sending: Promise<void> | null = null;
  #sentAt = Number.NEGATIVE_INFINITY;
  #sendTimer: Timer | null = null;

  constructor(
    execute: ExecuteQuery,
    channel: string,
    sender: string,
    onWarning: (message: string, error: unknown) => void,
    runtime: Runtime,
  ) {
    this.#execute = execute;
    this.#channel = channel;
    this.#sender = sender;
    this.#onWarning = onWarning;
    this.#runtime = runtime;
  }

  /** Returns at once. A lost hint does no harm, because polling finds the change as well. */
  enqueue(hints: readonly Hint[]): void {
    if (hints.length === 0) return;
    this.#pendingHints.add(hints);
    if (this.#sending !== null) return;
    const delayMs = hints.every(isLargeDoneHint) ? this.#sentAt + largeHintIntervalMs - this.#runtime.monotonic() : 0;
    if (delayMs <= 0) this.#sendNow();
    else this.#sendTimer ??= this.#runtime.setTimeout(() => this.#sendNow(), delayMs);
  }

  /** Resolves when all hints so far have been sent, or have failed. */
  async flush(): Promise<void> {
    if (this.#sendTimer !== null) this.#sendNow();
    await this.#sending;
  }

  #sendNow(): void {
    this.#runtime.clearTimeout(this.#sendTimer);
    this.#sendTimer = null;
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    while (!this.#pendingHints.isEmpty) {
      const payload = encodeHints(this.#pendingHints.hints(), this.#sender);
      this.#pendingHints = new HintBuffer();
      this.#sentAt = this.#runtime.monotonic();
      await this.#execute({
        name: "pawl_notify",
        text: "SELECT pg_notify($1, $2)",
        values: [this.#channel, payload],
      }).catch((error: unknown) =>
        this.#onWarning("A notification to other processes was lost; they find the change by polling.", error),
      );
    }
    this.#sending = null;
  }
}

/**
 * When many runs end in each commit, their hints are delayed by up to 50 ms, because a notification for every commit
 * would be a third of all statements. Hints about ready tasks and messages are always sent at once.
 */
const largeHintSize = 16;
const largeHintIntervalMs = 50;
const isLargeDoneHint = (hint: Hint): boolean => hint.kind === "done" && hint.runIds.length >= largeHintSize;

/** Collects hints and merges those of the same kind. */
class HintBuffer {
  #hasAnything = false;
  #hasReadyOfUnknownWorkflow = false;
  #hasSchedules = false;
  #hasFiredSchedules = false;
  #startDeadlineInMs = Number.POSITIVE_INFINITY;
  #hasSlots = false;
  readonly #readyWorkflows = new Set<string>();
  readonly #receiverIds = new Set<string>();
  readonly #finishedIds = new Set<string>();

  get isEmpty(): boolean {
    return (
      !this.#hasAnything &&
      !this.#hasSchedules &&
      !this.#hasFiredSchedules &&
      this.#startDeadlineInMs === Number.POSITIVE_INFINITY &&
      !this.#hasSlots &&
      !this.#hasReadyOfUnknownWorkflow &&
      this.#readyWorkflows.size + this.#receiverIds.size + this.#finishedIds.size === 0
    );
  }

  add(hints: readonly Hint[]): void {
    for (const hint of hints) {
      if (hint.kind === "anything") this.#hasAnything = true;
      else if (hint.kind === "schedules" && hint.areFired) this.#hasFiredSchedules = true;
      else if (hint.kind === "schedules") this.#hasSchedules = true;
      else if (hint.kind === "startDeadline") this.#startDeadlineInMs = Math.min(this.#startDeadlineInMs, hint.inMs);
      else if (hint.kind === "slots") this.#hasSlots = true;
      else if (hint.kind === "messages") for (const id of hint.runIds) this.#receiverIds.add(id);
      else if (hint.kind === "done") for (const id of hint.runIds) this.#finishedIds.add(id);
      else if (hint.workflows.length === 0) this.#hasReadyOfUnknownWorkflow = true;
      else for (const workflow of hint.workflows) this.#readyWorkflows.add(workflow);
    }
  }

  hints(): readonly Hint[] {
    if (this.#hasAnything) return [{ kind: "anything" }];
    const hints: Hint[] = [];
    if (this.#hasReadyOfUnknownWorkflow) hints.push({ kind: "ready", workflows: [] });
    else if (this.#readyWorkflows.size > 0) hints.push({ kind: "ready", workflows: [...this.#readyWorkflows] });
    if (this.#receiverIds.size > 0) hints.push({ kind: "messages", runIds: [...this.#receiverIds] });
    if (this.#finishedIds.size > 0) hints.push({ kind: "done", runIds: [...this.#finishedIds] });
    if (this.#hasSchedules) hints.push({ kind: "schedules" });
    else if (this.#hasFiredSchedules) hints.push({ kind: "schedules", areFired: true });
    const inMs = this.#startDeadlineInMs;
    if (inMs < Number.POSITIVE_INFINITY) hints.push({ kind: "startDeadline", inMs });
    if (this.#hasSlots) hints.push({ kind: "slots" });
    return hints;
  }
}
