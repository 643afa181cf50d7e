/** What happened outside of the database: bodies that ran, what clients were told. The checker compares it with what is stored. */
import type { Fence } from "../../src/store/contract/store.js";

export interface BodyEntry {
  readonly run: string;
  /** The key of the step in the log. */
  readonly step: string;
  /** Which execution of this step's body it is, from 1. */
  readonly nth: number;
  readonly process: string;
  /** The fence of the worker whose process began it. */
  readonly fence: Fence | null;
  /** The number of the last entry in the journal of the database when it began. */
  readonly begunAfter: number;
  readonly begunAt: number;
  readonly isPoison: boolean;
  readonly attempt: number | null;
  end: "value" | "error" | null;
  token: string | null;
  /** Where its step must hold a slot while it is executed; null if it has no limit. */
  readonly lane: string | null;
}

export interface ItemEntry {
  readonly run: string;
  readonly step: string;
  readonly item: number;
  readonly process: string;
  readonly fence: Fence | null;
  readonly begunAfter: number;
}

export interface AcknowledgedStart {
  readonly plan: number;
  readonly workflow: string;
  readonly key: string;
  readonly run: string;
}

/** What the code of a run that has gathered starts got as its input, in one execution of it. */
export interface GatheredInput {
  readonly run: string;
  readonly tokens: readonly string[];
}

/** A start that is gathered with others, or that others with its key may replace or follow. */
export interface TokenStart {
  /** What its input contains, and no other. */
  readonly token: string;
  readonly workflow: string;
  /** The number of the last entry in the journal when it was sent, and when it was acknowledged. */
  readonly sentAfter: number;
  readonly acknowledgedAfter: number;
  readonly run: string;
  /** Its place in the list of its run; null if its run has one input. */
  readonly position: number | null;
  /** How it has its run: as the first of them, by a later start, or not at all. */
  readonly outcome: "created" | "merged" | "replaced" | "attached";
  /** Whether its input takes the place of earlier ones. */
  readonly isLastInput: boolean;
}

/** The run of an acknowledged start. */
export interface OutcomeOfToken {
  readonly token: string;
  readonly output: unknown;
}

export interface AcknowledgedSignal {
  readonly run: string;
  readonly name: string;
  readonly key: string;
  /** The number of the last entry in the journal when it was sent first, and when it was acknowledged. */
  readonly sentAfter: number;
  readonly acknowledgedAfter: number;
}

export interface CommandEntry {
  readonly run: string;
  readonly command: string;
  readonly at: number;
  outcome: "sent" | "done" | "refused";
}

export interface ResultEntry {
  readonly run: string;
  readonly output: unknown;
}

export class Ledger {
  readonly bodies: BodyEntry[] = [];
  readonly items: ItemEntry[] = [];
  readonly starts: AcknowledgedStart[] = [];
  /** Starts that were acknowledged, and that may share a run with others. */
  readonly tokenStarts: TokenStart[] = [];
  /** All tokens that were ever sent. */
  readonly sentTokens = new Set<string>();
  readonly gatheredInputs: GatheredInput[] = [];
  readonly tokenOutputs: OutcomeOfToken[] = [];
  /** Runs for which a retry was acknowledged, and the retry. */
  readonly retries: { readonly run: string; readonly retry: string }[] = [];
  readonly signals: AcknowledgedSignal[] = [];
  readonly commands: CommandEntry[] = [];
  readonly results: ResultEntry[] = [];
  /** By process: when it crashed or was stopped, in entries of the journal. */
  readonly deaths: { readonly process: string; readonly after: number }[] = [];
  /** The names of schedules that a client put and that were acknowledged. */
  readonly schedules: string[] = [];
  readonly #counts = new Map<string, number>();

  countBody(run: string, step: string): number {
    const key = `${run}\u0000${step}`;
    const nth = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, nth);
    return nth;
  }
}
