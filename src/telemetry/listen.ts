/**
 * Listens on Pawl's channels for those who make something of what they hear. An exception in a listener would end the
 * process (Node throws it again where nothing can catch it): here it is caught, and told once.
 */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Logger } from "../define/context.js";
import type { ToldCall, ToldStart } from "./around.js";
import { defaultLogger } from "./logger.js";
import type { ToldEvent, ToldStatus } from "./tell.js";

/** Hears of everything that becomes durable in this process. */
export interface Listener {
  event(told: ToldEvent): void;
  run?(told: ToldStatus): void;
}

/** Takes part in calls and starts, see `around.ts`. */
interface Participant {
  call(told: ToldCall): void;
  start(told: ToldStart): void;
}

/** Something that listens until it is told to stop. */
export interface Listening {
  /** Listens no more. Resolves when what was heard before has been dealt with: before the database is let go of. */
  stop(): Promise<void>;
}

export interface ListeningOptions {
  /** Is told, once, that an exporter or a look-up fails; default: the console. */
  readonly logger?: Pick<Logger, "warn">;
}

/** Does what others asked for, without their ever hearing of its failures. */
export class Guard {
  readonly #what: string;
  readonly #logger: Pick<Logger, "warn">;
  readonly #underWay = new Set<Promise<void>>();
  #complained = false;

  /** @param what "Tracing" */
  constructor(what: string, { logger = defaultLogger }: ListeningOptions) {
    this.#what = what;
    this.#logger = logger;
  }

  try(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.complain(error);
    }
  }

  /** Goes on with the value, at once if it is there. */
  with<Value>(value: Value | Promise<Value>, work: (value: Value) => void): void {
    if (!(value instanceof Promise)) return this.try(() => work(value));
    const done = value
      .then(work)
      .catch((error) => this.complain(error))
      .finally(() => this.#underWay.delete(done));
    this.#underWay.add(done);
  }

  complain(error: unknown): void {
    if (this.#complained) return;
    this.#complained = true;
    try {
      this.#logger.warn(`${this.#what} of runs failed. The runs go on; further failures of it are not told.`, error);
    } catch {
      // A logger that fails cannot be told of.
    }
  }

  async settled(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }
}

/** Returns how to stop. */
export function takePart(participant: Participant, guard: Guard): () => void {
  const onCall = (told: unknown) => guard.try(() => participant.call(told as ToldCall));
  const onStart = (told: unknown) => guard.try(() => participant.start(told as ToldStart));
  subscribe("pawl:call", onCall);
  subscribe("pawl:start", onStart);
  return () => {
    unsubscribe("pawl:call", onCall);
    unsubscribe("pawl:start", onStart);
  };
}

export function listen(listener: Listener, guard: Guard): Listening {
  const onEvent = (told: unknown) => guard.try(() => listener.event(told as ToldEvent));
  const onRun = (told: unknown) => guard.try(() => listener.run?.(told as ToldStatus));
  subscribe("pawl:event", onEvent);
  subscribe("pawl:run", onRun);
  return {
    stop: () => {
      unsubscribe("pawl:event", onEvent);
      unsubscribe("pawl:run", onRun);
      return guard.settled();
    },
  };
}
