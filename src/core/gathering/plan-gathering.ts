/** Decides which run each of several starts belongs to. The store has locked the rows from which this is decided. */
import type { NewRun } from "../run/transition.js";
import {
  type GatherRule,
  isFull,
  listSizeOf,
  type RunGathering,
  readGathering,
  writeGathering,
} from "./run-gathering.js";

export type { GatherRule } from "./run-gathering.js";

/** A start that may be gathered with others. */
export interface GatherCall {
  /** `gatheringIdOf` its run. */
  readonly id: string;
  readonly key: string;
  readonly rule: GatherRule;
  /** The run that it creates if no run gathers its like. Its id also identifies the call, so that it can be repeated. */
  readonly run: NewRun;
  /** The idempotency key of one element of a batch; the run itself has none. */
  readonly startKey: string | null;
}

/** One element of a list. */
export interface GatheredItem {
  /** The id of the run of the call, see `GatherCall.run`. */
  readonly callId: string;
  readonly runId: string;
  readonly position: number;
  readonly workflow: string;
  readonly startKey: string | null;
  /** The encoded input; null when the run has begun, whose row has all of them, unless the item has a key. */
  readonly input: string | null;
}

/** Where a start has got to. */
export interface GatherOutcome {
  readonly runId: string;
  /** Its position in the list of a batch; null: the whole run is the answer to the start. */
  readonly position: number | null;
  /** Whether it was added to a run that an earlier start has created. */
  readonly isMerged: boolean;
  /** Set if another start has used its idempotency key: the encoded input of that start. */
  readonly inputOfKey?: string;
}

export interface GatheringRun {
  readonly runId: string;
  readonly gathering: RunGathering;
  /** When its task is or was due. */
  readonly dueAt: number;
}

export interface GatheringUpdate extends GatheringRun {
  /** The new input; null leaves it as it is. */
  readonly input: string | null;
  /** Whether `dueAt` or the keys of limits may have changed. */
  readonly isMoved: boolean;
}

export interface GatheringFacts {
  readonly calls: readonly GatherCall[];
  /** The instant of the store's clock. */
  readonly at: number;
  /** The runs that gather, by the id of the gathering: those that no worker has begun, and no operator has touched. */
  readonly open: ReadonlyMap<string, GatheringRun>;
  /** Items that were written before with the ids or the start keys of these calls. */
  readonly known: readonly GatheredItem[];
}

export interface GatheringPlan {
  readonly outcomes: readonly GatherOutcome[];
  readonly starts: readonly NewRun[];
  readonly updates: readonly GatheringUpdate[];
  readonly items: readonly GatheredItem[];
  /** The run that gathers from now on, by the id of the gathering, where it is another than before. */
  readonly leads: ReadonlyMap<string, string>;
}

export function planGathering({ calls, at, open, known }: GatheringFacts): GatheringPlan {
  const drafts = new Map([...open].map(([id, run]) => [id, draftOf(run)]));
  const allDrafts = [...drafts.values()];
  const items: GatheredItem[] = [];
  const byCall = new Map(known.map((item) => [item.callId, item]));
  const byKey = new Map(known.flatMap((item) => (item.startKey === null ? [] : [[keyOf(item), item] as const])));
  const leads = new Map<string, string>();
  const outcomes = calls.map((call): GatherOutcome => {
    const { run, rule, startKey } = call;
    const repeated = byCall.get(run.id);
    if (repeated !== undefined) return outcomeOf(rule, repeated);
    const earlier = startKey === null ? undefined : byKey.get(keyOf({ workflow: run.workflow, startKey }));
    if (earlier !== undefined) return { ...outcomeOf(rule, earlier), isMerged: false, inputOfKey: earlier.input ?? "" };
    let draft = drafts.get(call.id);
    // The call has created this run before, but did not get the answer.
    if (draft?.newRun === null && draft.runId === run.id) return { runId: run.id, position: null, isMerged: false };
    const isMerged = draft !== undefined && !isFull(draft.gathering);
    if (isMerged) merge(draft as Draft, call, at);
    else {
      draft = createDraft(call, at);
      drafts.set(call.id, draft);
      allDrafts.push(draft);
      leads.set(call.id, draft.runId);
    }
    const { runId, gathering } = draft as Draft;
    if (gathering.list === undefined) return { runId, position: null, isMerged };
    const item = {
      callId: run.id,
      runId,
      position: gathering.calls - 1,
      workflow: run.workflow,
      startKey,
      input: run.input,
    };
    items.push(item);
    if (startKey !== null) byKey.set(keyOf(item), item);
    return { ...outcomeOf(rule, item), isMerged };
  });
  return {
    outcomes,
    items,
    leads,
    starts: allDrafts.flatMap((draft) => (draft.newRun === null ? [] : [finishedRun(draft, draft.newRun, at)])),
    updates: allDrafts.flatMap(({ newRun, isChanged, ...update }) => (newRun === null && isChanged ? [update] : [])),
  };
}

interface Draft extends Mutable<GatheringUpdate> {
  newRun: NewRun | null;
  isChanged: boolean;
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

const draftOf = (run: GatheringRun): Draft => ({ ...run, input: null, isMoved: false, newRun: null, isChanged: false });

function createDraft({ id, key, rule, run }: GatherCall, at: number): Draft {
  const size = listSizeOf(rule);
  const list = size === null ? {} : { list: { size, bytes: Buffer.byteLength(run.input) } };
  const gathering: RunGathering = {
    gathering: rule.kind,
    id,
    key: shortenKey(key),
    calls: 1,
    firstAt: at,
    lastAt: at,
    ...list,
  };
  const draft = { runId: run.id, gathering, input: null, isMoved: false, newRun: run, isChanged: true };
  return { ...draft, dueAt: dueAtOf(rule, gathering, at) };
}

/** The key is kept for people alone, so a long one is cut. */
const shortenKey = (key: string) => (key.length <= maxKeyLength ? key : `${key.slice(0, maxKeyLength)}…`);
const maxKeyLength = 200;

function merge(draft: Draft, { rule, run }: GatherCall, at: number): void {
  const { gathering } = draft;
  const { list } = gathering;
  draft.isChanged = true;
  draft.gathering = {
    ...gathering,
    calls: gathering.calls + 1,
    // The clock of a database may be set back.
    lastAt: Math.max(at, gathering.lastAt),
    ...(list === undefined ? {} : { list: { ...list, bytes: list.bytes + Buffer.byteLength(run.input) } }),
  };
  if (rule.kind === "debounce" && rule.keep === "last") draft.input = run.input;
  const dueAt = rule.kind === "batch" && !isFull(draft.gathering) ? draft.dueAt : dueAtOf(rule, draft.gathering, at);
  // A due run may wait for slots that its earlier input needed, so it gets its route back also if its time stays the same.
  if (dueAt !== draft.dueAt || draft.input !== null) draft.isMoved = true;
  draft.dueAt = dueAt;
}

function dueAtOf(rule: GatherRule, gathering: RunGathering, at: number): number {
  const { firstAt } = gathering;
  if (isFull(gathering)) return at;
  return rule.kind === "batch" ? firstAt + rule.withinMs : Math.min(at + rule.quietMs, firstAt + rule.maxMs);
}

/** The row of a run that is created: until it begins, the input of a list is that of its first start. */
const finishedRun = ({ gathering, input, dueAt }: Draft, run: NewRun, at: number): NewRun => ({
  ...run,
  input: input ?? run.input,
  startKey: null,
  schedule: writeGathering(gathering),
  // The clock by which a store creates runs may be a little behind the one that has been read.
  due: dueAt <= at ? { kind: "now" } : { kind: "at", ms: dueAt },
});

const outcomeOf = (rule: GatherRule, { runId, position }: GatheredItem): GatherOutcome => ({
  runId,
  position: rule.kind === "batch" ? position : null,
  isMerged: position > 0,
});

const keyOf = ({ workflow, startKey }: Pick<GatheredItem, "workflow" | "startKey">) => `${workflow}\u0000${startKey}`;

/** @returns null if the run gathers no starts (any more) */
export function openGatheringOf(text: string | undefined): RunGathering | null {
  const gathering = readGathering(text);
  return gathering === null || gathering.begun ? null : gathering;
}
