/** Everything that a check may read, indexed once, and how it reports problems. */
import type { Answer, Begin, Entry, Fault, Intent, ItemDone } from "./ledger.js";
import type { LogEvent, Records, RunRow } from "./records.js";
import type { Snapshot } from "./snapshots.js";

export interface Violation {
  /** The number of the invariant ("I3"), or a word for those without one. "note": allowed but worth a look. */
  readonly invariant: string;
  readonly run: string | null;
  readonly text: string;
}

/** A command as its client recorded it. */
export interface Command extends Omit<Intent, "kind"> {
  readonly answer: Answer | null;
  readonly isAcknowledged: boolean;
}

export type Report = (invariant: string, run: string | null, text: string) => void;

export class Evidence {
  readonly records: Records;
  readonly snapshots: readonly Snapshot[];
  /** Started bodies by their token. */
  readonly begins = new Map<string, Begin>();
  /** Tokens of bodies that ended. */
  readonly ended = new Set<string>();
  readonly items: ItemDone[] = [];
  readonly commands: Command[];
  readonly faults: Fault[] = [];

  constructor(records: Records, entries: readonly Entry[], snapshots: readonly Snapshot[]) {
    this.records = records;
    this.snapshots = snapshots;
    const answers = new Map<string, Answer>();
    const intents: Intent[] = [];
    for (const entry of entries) {
      if (entry.kind === "begin") this.begins.set(entry.token, entry);
      else if (entry.kind === "end") this.ended.add(entry.token);
      else if (entry.kind === "item") this.items.push(entry);
      else if (entry.kind === "intent") intents.push(entry);
      else if (entry.kind === "answer") answers.set(entry.id, entry);
      else this.faults.push(entry);
    }
    this.commands = intents.map((intent) => {
      const answer = answers.get(intent.id) ?? null;
      return { ...intent, answer, isAcknowledged: answer?.answer === "acknowledged" };
    });
  }

  logOf(run: string): readonly LogEvent[] {
    return this.records.logs.get(run) ?? [];
  }

  /** Every run with its log. */
  *runs(): Generator<readonly [RunRow, readonly LogEvent[]]> {
    for (const run of this.records.runs.values()) yield [run, this.logOf(run.id)];
  }
}

/** The tokens of effects that are recorded as results. */
export const isToken = (value: unknown): value is string => typeof value === "string" && value.startsWith("tok:");
