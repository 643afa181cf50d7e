/** Explains why a run, or a step of it, that waits for a slot of a limit does not get it. */
import { laneOf, stepOfSlot } from "../../core/limits/lane.js";
import { formatDuration } from "../../core/naming/duration.js";
import type { ClassRecord, SlotRecord } from "../../store/contract/limits.js";
import type { Store, TaskRecord } from "../../store/contract/store.js";
import { type LimitInfo, toHolder, toInfo } from "../limits/limit-info.js";
import { maxWaiting } from "../limits/waiting.js";
import type { Explanation, LimitedBy } from "./explanation.js";

const maxHolders = 20;
/** A sentence names this many of them. */
const maxNamedHolders = 5;
const maxCounted = 1_000;
/** Behind this many, the place in the line is not counted. */
const maxPosition = 500;
/** A line is made of the classes that are blocked on the lane; the place among more of them is an estimate of less worth. */
const maxClasses = 100;

/** Returns null if all its limits have a free slot: then it only waits for a worker. */
export async function explainLimited(store: Store, task: TaskRecord, since: Date | null): Promise<Explanation | null> {
  if (task.classId === undefined) return null;
  const [runClass] = await store.limits.classes({ ids: [task.classId] }, 1);
  if (runClass === undefined || runClass.blockedOn === null) return null;
  const lane = runClass.blockedOn;
  const [facts, line] = await Promise.all([readLane(store, lane), readLine(store, lane, runClass, task.runId)]);
  const limited = limitedBy(facts, lane, null, line);
  const sinceWhen = since === null ? "It is due" : `It has been due since ${since.toISOString()}`;
  const text = `${sinceWhen}, and waits for ${describeLimited(limited, facts.isRegistered)}`;
  return { because: "limited", text, since, until: limited.earliestAt, limited };
}

/** Explains the first of the steps of an owned run that wait for slots; null if none does. */
export async function explainLimitedStep(
  store: Store,
  runId: string,
): Promise<{ readonly text: string; readonly since: Date; readonly limited: LimitedBy } | null> {
  const slots = await store.limits.slots({ runIds: [runId] }, maxCounted);
  const waiting = slots.filter(({ isWaiting }) => isWaiting).sort((a, b) => a.at - b.at);
  const [first] = waiting;
  if (first === undefined) return null;
  const { lane, node } = first;
  const [facts, inLane] = await Promise.all([readLane(store, lane), store.limits.slots({ lane }, maxCounted)]);
  const line = inLane.filter(({ isWaiting }) => isWaiting).sort((a, b) => a.at - b.at);
  const index = line.findIndex((slot) => slot.runId === runId && slot.node === node);
  const limited = limitedBy(facts, lane, stepOfSlot(node), {
    position: index === -1 || index >= maxPosition ? null : index + 1,
    waiting: Math.max(1, line.length),
  });
  const others = waiting.length === 1 ? "" : `, and ${waiting.length - 1} more of its steps,`;
  const verb = waiting.length === 1 ? "waits" : "wait";
  const text = `Its step "${limited.step}"${others} ${verb} for ${describeLimited(limited, facts.isRegistered)}`;
  return { text, since: new Date(first.at), limited };
}

interface LaneFacts {
  readonly info: LimitInfo | null;
  readonly isRegistered: boolean;
  readonly inUse: number;
  readonly holders: readonly SlotRecord[];
  readonly opensAt: number | null;
}

async function readLane(store: Store, lane: string): Promise<LaneFacts> {
  const { limit: name } = laneOf(lane);
  const [stored, [record], holders, now] = await Promise.all([
    store.limits.list(),
    store.limits.lanes(name, { after: null, limit: 1, id: lane }),
    store.limits.holders([lane], maxHolders),
    store.now(),
  ]);
  const limit = stored.find((candidate) => candidate.name === name);
  return {
    info: limit === undefined ? null : toInfo(limit, noLoad, now),
    isRegistered: limit !== undefined,
    inUse: Math.min(record?.inUse ?? 0, maxCounted),
    holders,
    opensAt: record?.opensAt ?? null,
  };
}

const noLoad = { inUse: 0, inUseCapped: false, waiting: 0, waitingCapped: false };

type Line = Pick<LimitedBy, "position" | "waiting">;

/**
 * Between classes there are turns, so the run that stands at place n of its class comes after at most n runs of each other
 * class.
 */
async function readLine(store: Store, lane: string, runClass: ClassRecord, runId: string): Promise<Line> {
  const [classes, heads] = await Promise.all([
    store.limits.blockedClasses({ lanes: [lane] }, maxClasses),
    store.limits.heads(runClass, maxPosition + 1),
  ]);
  const others = classes.filter(({ id }) => id !== runClass.id);
  const counts = await store.limits.waiting([runClass.id, ...others.map(({ id }) => id)], maxWaiting);
  const waiting = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const place = heads.indexOf(runId);
  if (place === -1) return { position: null, waiting: Math.min(waiting, maxWaiting) };
  const before = others.map(({ id, turn }) => Math.min(counts.get(id) ?? 0, turn < runClass.turn ? place + 1 : place));
  const position = 1 + place + before.reduce((sum, count) => sum + count, 0);
  return { position: position > maxPosition ? null : position, waiting: Math.min(waiting, maxWaiting) };
}

function limitedBy(facts: LaneFacts, lane: string, step: string | null, { position, waiting }: Line): LimitedBy {
  const { info, inUse, holders, opensAt } = facts;
  const { concurrency, rate } = info?.inForce ?? { concurrency: 0, rate: null };
  const isFull = concurrency !== null && inUse >= concurrency;
  const isPaced = rate !== null && opensAt !== null && !isFull;
  const paceMs = rate === null ? 0 : rate.perMs / rate.limit;
  const earliestAt = isPaced ? new Date(Math.ceil(opensAt + ((position ?? 1) - 1) * paceMs)) : null;
  return {
    ...{ ...laneOf(lane), step, inUse, inForce: { concurrency, rate } },
    override: info?.override ?? null,
    holders: holders.map(toHolder),
    ...{ position, waiting, earliestAt },
  };
}

function describeLimited(limited: LimitedBy, isRegistered: boolean): string {
  const { limit, key, inForce, inUse, position, waiting, earliestAt } = limited;
  const ofKey = key === "" ? "" : ` for the key "${key}"`;
  const name = `the limit "${limit}"${ofKey}`;
  if (!isRegistered) return `a slot of ${name}, which no worker has registered: nothing says how many slots it has.`;
  const lineText =
    waiting < 2
      ? ""
      : ` It is number ${position ?? `${maxPosition + 1} or later`} of ${waiting >= maxWaiting ? `${maxWaiting} or more` : waiting} that wait.`;
  if (earliestAt !== null && inForce.rate !== null) {
    const { limit: count, perMs } = inForce.rate;
    return `the rate of ${name}, ${count} in ${formatDuration(perMs)}: it may begin at ${earliestAt.toISOString()}.${lineText}${overrideText(limited)}`;
  }
  const slots =
    inForce.concurrency === null ? `${inUse} slots are in use` : `${inUse} of ${inForce.concurrency} slots are in use`;
  return `a free slot of ${name}: ${slots}${holdersText(limited)}.${lineText}${overrideText(limited)}`;
}

function holdersText({ holders, inUse }: LimitedBy): string {
  if (holders.length === 0) return "";
  const named = holders.slice(0, maxNamedHolders).map(({ runId, step }) => {
    const ofStep = step === null ? "" : ` (step "${step}")`;
    return `${runId}${ofStep}`;
  });
  const others = inUse - named.length;
  return `, by ${named.join(", ")}${others > 0 ? ` and ${others} more` : ""}`;
}

function overrideText({ override }: LimitedBy): string {
  if (override === null) return "";
  const by = override.by === null ? "" : ` by ${override.by}`;
  const until = override.until === null ? "" : ` until ${override.until.toISOString()}`;
  const why = override.reason === null ? "" : `: ${override.reason.replace(/[.]$/, "")}`;
  return ` An override${by} is in force${until}${why}.`;
}
