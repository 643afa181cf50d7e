/** Changes the evidence of a sound world in one place, so that a test can see whether the checker notices. */
import type { NewEvent, Transition } from "../../src/store/contract/store.js";
import type { Evidence } from "./evidence.js";
import type { JournalEntry } from "./kernel/journal.js";

type Writable<T> =
  T extends ReadonlyMap<infer Key, infer Value>
    ? Map<Key, Writable<Value>>
    : T extends object
      ? { -readonly [Key in keyof T]: Writable<T[Key]> }
      : T;

export type OpenEvidence = Writable<Evidence>;
export type OpenEvent = OpenEvidence["logs"] extends Map<string, (infer Event)[]> ? Event : never;
export type OpenRun = OpenEvidence["runs"][number];
export type OpenEntry<Kind extends JournalEntry["kind"]> = Extract<OpenEvidence["journal"][number], { kind: Kind }>;

export interface Write {
  readonly entry: OpenEntry<"commit">;
  readonly transition: Writable<Transition>;
}

export class Tampering {
  readonly evidence: OpenEvidence;

  constructor(sound: Evidence) {
    this.evidence = structuredClone(sound) as OpenEvidence;
  }

  log(run: string): OpenEvent[] {
    return this.evidence.logs.get(run) ?? [];
  }

  /** Runs in function style that have completed, that no other run or client has heard of, and that no schedule has started. */
  get loneRuns(): OpenRun[] {
    const { runs, results } = this.evidence;
    return runs.filter(
      ({ id, workflow, status, parentId, schedule }) =>
        workflow === "program" &&
        status === "completed" &&
        parentId === null &&
        schedule === undefined &&
        !results.some(({ run }) => run === id) &&
        !runs.some((child) => child.parentId === id),
    );
  }

  /** Every event of this type, with the run that it belongs to. */
  events(type: string): { run: OpenRun; event: OpenEvent; data: Record<string, any> }[] {
    return this.evidence.runs.flatMap((run) =>
      this.log(run.id)
        .filter((event) => event.type === type)
        .map((event) => ({ run, event, data: event.data === null ? {} : JSON.parse(event.data) })),
    );
  }

  entries<Kind extends JournalEntry["kind"]>(kind: Kind): OpenEntry<Kind>[] {
    return this.evidence.journal.filter((entry): entry is OpenEntry<Kind> => entry.kind === kind);
  }

  /** The accepted writes to a run, in their order. */
  writes(run: string): Write[] {
    return this.entries("commit").flatMap((entry) =>
      entry.result.kind === "committed"
        ? entry.batch.transitions.filter(({ runId }) => runId === run).map((transition) => ({ entry, transition }))
        : [],
    );
  }

  /** The write that committed an event. */
  writeOf(run: string, seq: number): Write {
    return this.writes(run).findLast(
      ({ transition }) => transition.afterSeq < seq && transition.events.length > 0,
    ) as Write;
  }

  /** The write that ended a run. */
  end(run: string): Write & { readonly finish: Writable<Extract<Transition["next"], { kind: "finish" }>> } {
    const write = this.writes(run).at(-1) as Write;
    if (write.transition.next.kind !== "finish") throw new Error(`Run ${run} has not ended.`);
    return { ...write, finish: write.transition.next };
  }

  /** Changes an event both where it is stored and where its commit was written down, as if it had always been so. */
  change(run: string, seq: number, change: (event: Writable<NewEvent>, data: Record<string, any>) => void): void {
    const { transition } = this.writeOf(run, seq);
    const committed = transition.events[seq - transition.afterSeq - 1];
    for (const event of [this.log(run)[seq - 1], committed]) {
      if (event === undefined) throw new Error(`Run ${run} has no event ${seq}.`);
      const data = event.data === null ? {} : JSON.parse(event.data);
      change(event, data);
      event.data = JSON.stringify(data);
    }
  }

  /** Adds an event to the last write of a run, as if the database had accepted it. */
  append(run: OpenRun, event: Partial<NewEvent> & { readonly type: string }, data: unknown = {}): void {
    const { entry, transition } = this.end(run.id);
    const added = { node: null, attempt: null, outcome: null, ...event, data: JSON.stringify(data) };
    transition.events.push(added);
    const log = this.log(run.id);
    if (entry.result.kind === "committed") log.push({ ...added, seq: log.length + 1, at: entry.result.at });
    run.waiting = String(log.length);
  }

  /** An accepted claim of a run that happens after this entry of the journal; it is added to one that there is. */
  claim(run: string, after: number): boolean {
    const claim = this.entries("claimed").find(({ seq, runIds }) => seq > after && !runIds.includes(run));
    claim?.runIds.push(run);
    claim?.deliveries.push(1);
    return claim !== undefined;
  }
}
