/**
 * Notices code that has come to a standstill: its run has no step running and waits for nothing durable, because the code
 * awaits something of its own, or a schema that does not answer. Such a run is owned for as long as its worker lives, so
 * that only a warning can tell it from one that is about to go on.
 */
import type { Logger } from "../../define/context.js";

/** A turn whose code may have come to a standstill. */
interface Looked {
  readonly runId: string;
  readonly run: { readonly workflow: string };
  readonly state: { readonly seq: number };
  readonly isSilent: boolean;
}

const lookEveryMs = 60_000;

export class SilentCode {
  readonly #log: Logger;
  readonly #turns: () => Iterable<Looked>;
  /** Those that were silent at the last look, and how long their logs were then. */
  #before = new Map<Looked, number>();
  readonly #told = new WeakSet<Looked>();
  #timer: NodeJS.Timeout | null = null;

  constructor(log: Logger, turns: () => Iterable<Looked>) {
    this.#log = log;
    this.#turns = turns;
  }

  start(): void {
    this.#timer = setInterval(() => this.look(), lookEveryMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }

  look(): void {
    const now = new Map<Looked, number>();
    for (const turn of this.#turns()) {
      if (!turn.isSilent) continue;
      if (this.#before.get(turn) === turn.state.seq && !this.#told.has(turn)) this.#tell(turn);
      now.set(turn, turn.state.seq);
    }
    this.#before = now;
  }

  #tell(turn: Looked): void {
    this.#told.add(turn);
    this.#log.warn(
      `Run ${turn.runId} (${turn.run.workflow}) has recorded nothing for a minute, and no step of it is running: its code awaits something that is not under ctx, or a schema that does not answer. It is held by this worker until that settles; it can be canceled.`,
    );
  }
}
