/**
 * Tells other processes what changed. NOTIFY takes a lock on the whole server until its transaction has committed, so it
 * never travels with a write: hints are gathered while one notification is under way, and the next carries them all.
 */

import { createHash } from "node:crypto";
import type { Runtime, Timer } from "../../../runtime/runtime.js";
import type { Hint } from "../../contract/store.js";
import type { Run } from "./driver.js";

/** The server's limit is 8,000 bytes. */
const maxBytes = 7_900;

/** One channel per schema. Channels are apart for each database anyway; names are limited to 63 bytes. */
export const channelOf = (schema: string): string =>
  `pawl_${createHash("sha256").update(schema).digest("hex").slice(0, 24)}`;

/** The text of a notification. `sender` is missing where the sender itself is to hear it, too. */
export function encodeHints(hints: readonly Hint[], sender?: string): string {
  const payload = (some: readonly Hint[]) =>
    JSON.stringify(sender === undefined ? { hints: some } : { sender, hints: some });
  const text = payload(hints);
  return Buffer.byteLength(text) <= maxBytes ? text : payload([{ kind: "anything" }]);
}

/** What a notification says to `self`. Text that is not ours, or of a later version, is a reason to look. */
export function decodeHints(text: string, self: string): readonly Hint[] {
  try {
    const { sender, hints } = JSON.parse(text) as { sender?: string; hints: Hint[] };
    if (sender === self) return [];
    return hints.map((hint) => (isKnown(hint) ? hint : { kind: "anything" }));
  } catch {
    return [{ kind: "anything" }];
  }
}

function isKnown(hint: Hint): boolean {
  if (hint.kind === "ready") return Array.isArray(hint.workflows);
  return hint.kind === "anything" || ((hint.kind === "mail" || hint.kind === "done") && Array.isArray(hint.runIds));
}

export class Notifier {
  readonly #run: Run;
  readonly #runtime: Runtime;
  readonly #channel: string;
  readonly #sender: string;
  readonly #onTrouble: (what: string, error: unknown) => void;
  #gathered = new Gathered();
  #sending: Promise<void> | null = null;
  #sentAt = Number.NEGATIVE_INFINITY;
  #later: Timer | null = null;

  constructor(
    run: Run,
    channel: string,
    sender: string,
    onTrouble: (what: string, error: unknown) => void,
    runtime: Runtime,
  ) {
    this.#run = run;
    this.#channel = channel;
    this.#sender = sender;
    this.#onTrouble = onTrouble;
    this.#runtime = runtime;
  }

  /** Returns at once. A hint that is lost does no harm: polling is the backstop. */
  tell(hints: readonly Hint[]): void {
    if (hints.length === 0) return;
    this.#gathered.add(hints);
    if (this.#sending !== null) return;
    const waitMs = hints.every(isCrowd) ? this.#sentAt + crowdEveryMs - this.#runtime.monotonic() : 0;
    if (waitMs <= 0) this.#sendNow();
    else this.#later ??= this.#runtime.setTimeout(() => this.#sendNow(), waitMs);
  }

  /** When everything told so far has been sent, or given up. */
  async settled(): Promise<void> {
    if (this.#later !== null) this.#sendNow();
    await this.#sending;
  }

  #sendNow(): void {
    this.#runtime.clearTimeout(this.#later);
    this.#later = null;
    this.#sending ??= this.#send();
  }

  async #send(): Promise<void> {
    while (!this.#gathered.isEmpty) {
      const payload = encodeHints(this.#gathered.hints(), this.#sender);
      this.#gathered = new Gathered();
      this.#sentAt = this.#runtime.monotonic();
      await this.#run({
        name: "pawl_notify",
        text: "SELECT pg_notify($1, $2)",
        values: [this.#channel, payload],
      }).catch((error: unknown) => this.#onTrouble("A notification was lost.", error));
    }
    this.#sending = null;
  }
}

/**
 * Where runs end by the dozen, whoever waits for one of them can wait a moment longer: a notification for every commit
 * would be a third of all statements. Work to do and messages are always told at once.
 */
const crowdSize = 16;
const crowdEveryMs = 50;
const isCrowd = (hint: Hint): boolean => hint.kind === "done" && hint.runIds.length >= crowdSize;

/** Hints, merged as they come. */
class Gathered {
  #anything = false;
  #readyOfUnknown = false;
  readonly #ready = new Set<string>();
  readonly #mail = new Set<string>();
  readonly #done = new Set<string>();

  get isEmpty(): boolean {
    return !this.#anything && !this.#readyOfUnknown && this.#ready.size + this.#mail.size + this.#done.size === 0;
  }

  add(hints: readonly Hint[]): void {
    for (const hint of hints) {
      if (hint.kind === "anything") this.#anything = true;
      else if (hint.kind === "mail") for (const id of hint.runIds) this.#mail.add(id);
      else if (hint.kind === "done") for (const id of hint.runIds) this.#done.add(id);
      else if (hint.workflows.length === 0) this.#readyOfUnknown = true;
      else for (const workflow of hint.workflows) this.#ready.add(workflow);
    }
  }

  hints(): readonly Hint[] {
    if (this.#anything) return [{ kind: "anything" }];
    const hints: Hint[] = [];
    if (this.#readyOfUnknown) hints.push({ kind: "ready", workflows: [] });
    else if (this.#ready.size > 0) hints.push({ kind: "ready", workflows: [...this.#ready] });
    if (this.#mail.size > 0) hints.push({ kind: "mail", runIds: [...this.#mail] });
    if (this.#done.size > 0) hints.push({ kind: "done", runIds: [...this.#done] });
    return hints;
  }
}
