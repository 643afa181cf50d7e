/** All that the checker judges: what the store contains at the end, and what was written down outside of it. */

import type { ClassRecord, LaneRecord, SlotRecord } from "../../src/store/contract/limits.js";
import type {
  CursorRow,
  Fence,
  InboxRow,
  OccurrenceRecord,
  RunRecord,
  ScheduleRecord,
  StoredEvent,
  TaskRecord,
  WorkerRecord,
} from "../../src/store/contract/store.js";
import { limitNames } from "./checks/limit-plan.js";
import type { JournalEntry } from "./kernel/journal.js";
import type { UserRow } from "./kernel/user-table.js";
import type {
  AcknowledgedSignal,
  AcknowledgedStart,
  BodyEntry,
  CommandEntry,
  GatheredInput,
  ItemEntry,
  Ledger,
  OutcomeOfToken,
  ResultEntry,
  TokenStart,
} from "./ledger.js";
import type { World } from "./world.js";

export interface Evidence {
  runs: RunRecord[];
  logs: Map<string, StoredEvent[]>;
  tasks: TaskRecord[];
  inbox: Map<string, InboxRow[]>;
  cursors: Map<string, CursorRow[]>;
  workers: WorkerRecord[];
  slots: SlotRecord[];
  schedules: ScheduleRecord[];
  occurrences: OccurrenceRecord[];
  /** Schedules that a client has put, and that were acknowledged. */
  puts: string[];
  /** By schedule: its period in milliseconds. */
  periods: ReadonlyMap<string, number>;
  userRows: UserRow[];
  journal: JournalEntry[];
  bodies: BodyEntry[];
  items: ItemEntry[];
  starts: AcknowledgedStart[];
  signals: AcknowledgedSignal[];
  commands: CommandEntry[];
  results: ResultEntry[];
  /** The idempotency keys of the starts that were planned. */
  plannedKeys: string[];
  deaths: { readonly process: string; readonly after: number }[];
  /** What processes that have stopped properly have left open. */
  leftOpen: {
    readonly process: string;
    readonly transactions: number;
    readonly listeners: number;
    readonly timers: number;
  }[];
  /** Classes of waiting runs, and lanes that wait for something. */
  classes: ClassRecord[];
  lanes: LaneRecord[];
  tokenStarts: TokenStart[];
  /** The inputs of all starts that may share a run, also of those that were not acknowledged. */
  sentTokens: string[];
  gatheredInputs: GatheredInput[];
  tokenOutputs: OutcomeOfToken[];
  retries: Ledger["retries"][number][];
  /** By item of the plan: within how many milliseconds its run must begin. */
  startBy: ReadonlyMap<string, number>;
  maxDeliveries: number;
  hasTwoReleases: boolean;
  stuck: string | null;
  warnings: string[];
  /** Rejections that no code handled; each would have ended its process. */
  unhandled: string[];
}

const all = 1_000_000;

export async function collectEvidence(world: World): Promise<Evidence> {
  const { store, ledger, plan } = world;
  const runs = [...(await store.runs({ limit: all }))].reverse();
  const ids = runs.map(({ id }) => id);
  const cursors = new Map<string, CursorRow[]>();
  for (const id of ids) {
    const rows = await store.cursors(id);
    if (rows.length > 0) cursors.set(id, [...rows]);
  }
  const schedules = [...(await store.schedules.list({ after: null, limit: all }))];
  const occurrences: OccurrenceRecord[] = [];
  for (const { name } of schedules)
    occurrences.push(...(await store.schedules.occurrences({ schedule: name, before: null, limit: all })));
  const lanes: LaneRecord[] = [];
  for (const name of limitNames) lanes.push(...(await store.limits.lanes(name, { after: null, limit: all })));
  return {
    ...{ runs, cursors, schedules, occurrences },
    logs: copied(await store.logs(ids)),
    tasks: [...(await store.tasks(ids))],
    inbox: copied(await store.inbox(ids)),
    workers: [...(await store.workers())],
    slots: [...(await store.limits.slots({ afterRunId: null }, all))],
    puts: ledger.schedules,
    periods: new Map(plan.schedules.map(({ item, everyMs }) => [item, everyMs])),
    userRows: [...world.userTable.rows],
    journal: [...world.journal.entries],
    classes: [...(await store.limits.classes({ afterId: null }, all))],
    lanes,
    ...{ tokenStarts: ledger.tokenStarts, sentTokens: [...ledger.sentTokens], tokenOutputs: ledger.tokenOutputs },
    ...{ gatheredInputs: ledger.gatheredInputs, retries: ledger.retries },
    startBy: new Map(
      plan.runs.flatMap((run) =>
        "startByMs" in run && run.startByMs !== undefined ? [[run.item, run.startByMs]] : [],
      ),
    ),
    bodies: ledger.bodies,
    items: ledger.items,
    starts: ledger.starts,
    signals: ledger.signals,
    commands: ledger.commands,
    results: ledger.results,
    plannedKeys: plan.runs
      .filter((run) => run.at < Number.POSITIVE_INFINITY && !("conflict" in run))
      .map(({ item }) => item),
    deaths: ledger.deaths,
    leftOpen: world.leftOpen,
    maxDeliveries: world.maxDeliveries,
    hasTwoReleases: world.hasTwoReleases,
    stuck: world.stuck,
    warnings: world.warnings,
    unhandled: world.unhandled,
  };
}

const copied = <Row>(rows: ReadonlyMap<string, readonly Row[]>) =>
  new Map([...rows].filter(([, list]) => list.length > 0).map(([id, list]) => [id, [...list]]));

export type Invariant = `I${number}`;

export interface Violation {
  readonly invariant: Invariant;
  readonly run: string | null;
  readonly text: string;
}

export type Report = (invariant: Invariant, run: string | null, text: string) => void;

/** An event as the checker reads it: it decodes plain JSON only, which all values of the workloads are. */
export interface ReadEvent extends StoredEvent {
  readonly parsed: Record<string, any>;
}

export const isSameFence = (a: Fence | null, b: Fence | null) =>
  a === null || b === null ? a === b : a.workerId === b.workerId && a.epoch === b.epoch;
