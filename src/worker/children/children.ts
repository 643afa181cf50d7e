/** Starts the children of a run, one by one or as a map. Each child is a run with its own log, executed by any worker. */

import { decode } from "../../core/encoding/decode.js";
import { encode } from "../../core/encoding/encode.js";
import { type Failure, reviveFailure } from "../../core/encoding/error-record.js";
import { InvalidInputError, PermanentError, RunCanceledError, RunFailedError } from "../../core/errors/errors.js";
import { guardPromise } from "../../core/errors/guarded-promise.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { childRunId } from "../../core/naming/ids.js";
import { checkName, checkTags } from "../../core/naming/names.js";
import { cancelMapChildren } from "../../core/run/cancel-children.js";
import { dataOf, type NewEvent, newEvent } from "../../core/run/event.js";
import { expandRanges } from "../../core/run/ranges.js";
import { nextReleasedCount, releaseUpTo } from "../../core/run/release-children.js";
import type { MapOp } from "../../core/run/state.js";
import { childNode } from "../../core/run/step-key.js";
import type {
  ChildHandle,
  ChildOptions,
  ChildWorkflow,
  MapFailure,
  MapOptions,
  MapResult,
} from "../../define/children.js";
import { checkPriority } from "../../define/function/function.js";
import { checkHero, defaultHeroPolicy } from "../../define/hero.js";
import { asDefinition } from "../../define/resolve.js";
import { validate } from "../../define/standard-schema.js";
import type { RunRecord } from "../../store/contract/store.js";
import type { CallScope } from "../replay/call-scope.js";
import type { Deferred } from "../replay/result-delivery.js";
import type { CallPort, PausePort, RunPort, WritePort } from "../turn/ports.js";
import { readForTurn } from "../turn/read.js";
import { adoptChildren, asSuccessor, type ChildRunSpec, findChildPredecessor } from "./adoption.js";

type AnsweringTurn = RunPort & WritePort & PausePort;
type ParentTurn = AnsweringTurn & CallPort;

/** A map with more children creates them in several commits. */
const startsPerCommit = 500;
const readsPerPage = 500;
/** The limit exists because one process holds all results in one array. 100,000 items took 216 MB and 65 s on SQLite. */
const maxMapItems = 100_000;

const childOptions = new Set<string>(["hero", "name", "tags", "priority", "added"] satisfies (keyof ChildOptions)[]);
const mapOptions = new Set<string>(["name", "concurrency", "tolerate", "added"] satisfies (keyof MapOptions)[]);

export async function startChild<I, O>(
  scope: CallScope,
  child: ChildWorkflow<I, O>,
  input: I,
  options: ChildOptions = {},
): Promise<ChildHandle<O>> {
  const { turn } = scope;
  checkOptions(`Child "${nameOf(child)}"`, options, childOptions);
  const checkedOptions = checkTagsAndPriority(options);
  const key = scope.takeKey(checkName("step", options.name ?? nameOf(child)));
  const op = scope.findRecorded(key, "child");
  // An adopted child keeps the id that the earlier run gave it.
  const runId = op?.runId ?? childId(turn, key, 0);
  // The result is requested now, so that the replay knows that the code has made the call; the code may await it later.
  const isAdded = options.added === true;
  const result = guardPromise(scope.requestResult(key, isAdded) as Promise<O>);
  const handle: ChildHandle<O> = { runId, result: () => result };
  const untilLive = op === undefined ? scope.waitUntilLive(key, isAdded) : undefined;
  if (untilLive !== undefined) await untilLive;
  if (op !== undefined || turn.isDraining) {
    turn.scheduleIdleCheck();
    return handle;
  }
  const [spec, predecessor] = await scope.startCall(key, async () => {
    const createSpec = await createSpecFactory(turn, child, key, { ...options, ...checkedOptions });
    const newSpec = await createSpec(input, null);
    const foundPredecessor = await findChildPredecessor(turn, key, newSpec);
    if (foundPredecessor?.status === "completed") await turn.submit(completedChildEvents(key, foundPredecessor));
    return [newSpec, foundPredecessor] as const;
  });
  if (predecessor?.status === "completed") return { ...handle, runId: predecessor.id };
  const ownSpec = predecessor === null ? spec : asSuccessor(spec, predecessor);
  turn.pendingWrites.starts.push({ ...ownSpec, id: runId, due: { kind: "now" } });
  turn.pendingWrites.addWaitEvent(newEvent("child.started", { node: key }, { runId, workflow: nameOf(child) }));
  turn.scheduleIdleCheck();
  return handle;
}

/** Creates the events that adopt a completed child of an earlier run with its result. */
const completedChildEvents = (node: string, { id, workflow, output }: RunRecord): NewEvent[] => [
  newEvent("child.started", { node }, { runId: id, workflow }),
  newEvent("child.completed", { node }, {}, { output: output as string }),
];

export async function mapChildren<I, O>(
  scope: CallScope,
  child: ChildWorkflow<I, O>,
  items: readonly I[],
  options: MapOptions = {},
): Promise<MapResult<O>> {
  checkItems(items);
  checkOptions(`ctx.map("${nameOf(child)}")`, options, mapOptions);
  const { turn } = scope;
  const key = scope.takeKey(checkName("step", options.name ?? nameOf(child)));
  const count = items.length;
  const concurrency = checkCount("concurrency", options.concurrency ?? Math.max(1, count), 1);
  const tolerate = checkCount("tolerate", options.tolerate ?? 0, 0);
  const op = scope.findRecorded(key, "map");
  if (op !== undefined && op.count !== count) {
    turn.pauseDiverged([key], `the map "${key}" started with ${op.count} items and now has ${count}`);
  }
  const isAdded = options.added === true;
  const result = scope.requestResult(key, isAdded) as Promise<MapResult<O>>;
  const untilLive = op === undefined ? scope.waitUntilLive(key, isAdded) : undefined;
  if (untilLive !== undefined) await untilLive;
  if (!turn.isDraining && (op === undefined || (op.phase === "open" && op.spawnedCount < count))) {
    await scope.startCall(key, () =>
      spawnChildren(turn, child, items, {
        key,
        count,
        concurrency,
        tolerate,
        spawned: op?.spawnedCount ?? 0,
        isNew: op === undefined,
      }),
    );
  }
  turn.scheduleIdleCheck();
  return result;
}

interface SpawnOptions {
  readonly key: string;
  readonly count: number;
  readonly concurrency: number;
  readonly tolerate: number;
  /** How many children earlier turns have created. */
  readonly spawned: number;
  /** Whether the start of the map is not in the log yet. */
  readonly isNew: boolean;
}

function checkItems(items: unknown): asserts items is readonly unknown[] {
  if (!Array.isArray(items)) throw new InvalidInputError("ctx.map takes an array of items.");
  if (items.length > maxMapItems)
    throw new InvalidInputError(
      `ctx.map takes at most ${maxMapItems.toLocaleString("en")} items, not ${items.length.toLocaleString("en")}: map over ` +
        "parts of them with a child workflow that maps over its part, or use a resumable step.",
    );
}

/** Throws if an option is invalid; called before anything is recorded. */
function checkTagsAndPriority({ tags, priority }: ChildOptions): ChildOptions {
  return {
    ...(tags === undefined ? {} : { tags: checkTags(tags) }),
    ...(priority === undefined ? {} : { priority: checkPriority(priority) }),
  };
}

/**
 * Creates the children in pages, one commit per page. Children beyond the concurrency are created as held: they become due
 * when other children have ended. An item that cannot be stored must not leave a partial map in the log, so all items are
 * validated before the first commit. The encoded items are not cached, because 100,000 items would be in memory twice.
 */
async function spawnChildren<I, O>(
  turn: ParentTurn,
  child: ChildWorkflow<I, O>,
  items: readonly I[],
  map: SpawnOptions,
): Promise<void> {
  const { key, count, concurrency, tolerate } = map;
  const createSpec = await createSpecFactory(turn, child, key, {});
  let spawnedCount = map.spawned;
  let isNew = map.isNew;
  // If the map is in the log, its items were validated when it started. A single page is validated before its commit
  // anyway.
  if (isNew && count > startsPerCommit) await validateAllItems(turn, items, createSpec);
  const createSpecs = async (first: number, end: number) => {
    const specs: ChildRunSpec[] = [];
    for (let index = first; index < end; index += 1) specs.push(await createSpec(items[index] as I, index));
    return specs;
  };
  // The event that starts the map lists all adopted children, so a run that retries another one looks for all of them
  // first.
  const allSpecs = turn.state.lineage?.childrenOrigins.has(key) ? await createSpecs(spawnedCount, count) : null;
  const recordedMap = turn.state.ops.get(key) as MapOp | undefined;
  const { adopted, isAdopted } = await adoptChildren(turn, {
    key,
    first: spawnedCount,
    specs: allSpecs ?? [],
    map: recordedMap,
  });
  const adoptionData = adopted.length === 0 ? {} : { from: [...adopted] };
  do {
    const end = Math.min(count, spawnedCount + startsPerCommit);
    const specs =
      allSpecs?.slice(spawnedCount - map.spawned, end - map.spawned) ?? (await createSpecs(spawnedCount, end));
    // Children that have ended since the last page allow more children to be released.
    const op = turn.state.ops.get(key) as MapOp | undefined;
    const releasedCount = nextReleasedCount(
      op ?? { ...emptyMapCounts, concurrency, endedIndexes: { has: isAdopted } },
      end,
    );
    for (let index = spawnedCount; index < end; index += 1) {
      if (isAdopted(index)) continue;
      const { startBy, ...spec } = specs[index - spawnedCount] as ChildRunSpec;
      const isReleased = index < releasedCount;
      turn.pendingWrites.starts.push({
        ...spec,
        id: childId(turn, key, index),
        due: { kind: isReleased ? "now" : "held" },
        // The map itself keeps the other children from beginning, for as long as the children before them take.
        ...(isReleased && startBy !== undefined ? { startBy } : {}),
      });
    }
    const settings = { workflow: nameOf(child), count, concurrency, tolerate };
    turn.pendingWrites.events.push(
      isNew
        ? newEvent(
            "map.started",
            { node: key },
            { ...settings, spawned: end, released: releasedCount, ...adoptionData },
          )
        : newEvent("map.spawned", { node: key }, { spawned: end, released: releasedCount }),
    );
    isNew = false;
    spawnedCount = end;
    if (!(await turn.submit([]))) return;
    if (turn.inboxCheck !== null) await turn.inboxCheck;
    // A paused run creates the remaining children when it is resumed; a canceled run never does.
    if (turn.isDraining) return;
  } while (spawnedCount < count && (turn.state.ops.get(key) as MapOp).phase === "open");
}

/** Throws if an item cannot be encoded or the child's schema rejects it. Yields to the event loop after each page. */
async function validateAllItems(
  { host }: RunPort,
  items: readonly unknown[],
  createSpec: (input: unknown, index: number) => Promise<unknown>,
): Promise<void> {
  for (let index = 0; index < items.length; index += 1) {
    await createSpec(items[index], index);
    if (index % startsPerCommit === startsPerCommit - 1)
      await new Promise<void>((resolve) => host.runtime.setImmediate(resolve));
  }
}

/**
 * Looks up the fields that all children of one call share. The returned function adds the input and index of one child.
 */
async function createSpecFactory<I, O>(
  turn: ParentTurn,
  child: ChildWorkflow<I, O>,
  key: string,
  options: ChildOptions,
) {
  const definition = typeof child === "string" ? null : asDefinition(child);
  const name = nameOf(child);
  const registration = definition === null ? await readForTurn(turn, () => turn.host.findRegistration(name)) : null;
  const schema = definition?.inputSchema ?? null;
  const hero = checkHero(name, definition?.hero ?? registration?.hero ?? defaultHeroPolicy, options.hero);
  const startByMs = (definition ?? registration)?.startByMs ?? null;
  const sharedFields = {
    workflow: name,
    version: definition?.version ?? registration?.version ?? "",
    queue: definition?.queue ?? registration?.queue ?? name,
    priority: options.priority ?? definition?.priority ?? 0,
    heroType: hero?.type ?? null,
    heroId: hero?.id ?? null,
    heroKey: null,
    tags: options.tags ?? definition?.tags ?? [],
    startKey: null,
    parentId: turn.runId,
    parentNode: childNode(turn.state, key),
    parentAttempt: null,
    ...(startByMs === null ? {} : { startBy: { kind: "in" as const, ms: startByMs } }),
  };
  return async (input: unknown, parentIndex: number | null): Promise<ChildRunSpec> => {
    if (schema !== null) await validate(schema, input, `input of child workflow "${name}"`);
    return { ...sharedFields, parentIndex, input: encode(input, { label: `the input of child workflow "${name}"` }) };
  };
}

const childId = (turn: RunPort, key: string, index: number) =>
  childRunId(turn.runId, childNode(turn.state, key), index);

/** Returns a function from index to run id. Adopted children have the ids that the earlier run gave them. */
function childIds(turn: RunPort, key: string, { adopted }: MapOp): (index: number) => string {
  const adoptedIds = new Map<number, string>();
  for (const { run, node, indexes } of adopted ?? [])
    for (const index of expandRanges(indexes)) adoptedIds.set(index, childRunId(run, node, index));
  return (index) => adoptedIds.get(index) ?? childId(turn, key, index);
}

/** The counts of a map whose start is not in the log yet. */
const emptyMapCounts = { releasedCount: 0, endedCount: 0, endedBeforeRelease: 0 };

const nameOf = (child: ChildWorkflow<any, any>): string =>
  typeof child === "string" ? child : asDefinition(child).name;

function checkCount(name: string, value: number, min: number): number {
  if (Number.isInteger(value) && value >= min && value <= Number.MAX_SAFE_INTEGER) return value;
  if (value === Number.POSITIVE_INFINITY) return Number.MAX_SAFE_INTEGER;
  throw new InvalidInputError(`The ${name} of a map is a whole number of at least ${min}, not ${value}.`);
}

/** Releases as many held children of each map as its concurrency allows, after other children have ended. */
export function releaseChildren(turn: ParentTurn): void {
  for (const [key, op] of turn.state.ops) {
    if (op.kind !== "map" || op.phase !== "open") continue;
    const releasedCount = nextReleasedCount(op, op.spawnedCount);
    if (releasedCount <= op.releasedCount) continue;
    for (let index = op.releasedCount; index < releasedCount; index += 1)
      if (!op.endedIndexes.has(index)) turn.pendingWrites.releasedChildIds.push(childId(turn, key, index));
    turn.pendingWrites.events.push(newEvent("map.released", { node: key }, { released: releasedCount }));
    // The state is changed before the commit, so that another call until then does not release the same children again.
    releaseUpTo(op, releasedCount);
  }
}

/** Cancels the remaining children of maps with more failures than they tolerate. */
export function cancelChildrenOfFailedMaps(turn: ParentTurn, events: readonly NewEvent[]): void {
  for (const event of events) {
    const op = event.type === "map.settled" ? turn.state.ops.get(event.node ?? "") : undefined;
    if (op?.kind !== "map" || event.node === null) continue;
    const { completed, failed } = dataOf(event, "map.settled");
    const failures = [...expandRanges(failed)];
    if (op.failedIndexes.length + failures.length <= op.tolerate) continue;
    const endedIndexes = new Set([...expandRanges(completed), ...failures]);
    for (const message of cancelMapChildren(turn.runId, turn.state, event.node, op, endedIndexes))
      turn.pendingWrites.messages.push(message);
  }
}

/** Settles the call of an ended map; the results of its children are read in pages. */
export async function resolveMap(turn: AnsweringTurn, key: string, op: MapOp, call: Deferred): Promise<void> {
  try {
    const idOf = childIds(turn, key, op);
    const ids =
      op.phase === "settled" ? Array.from({ length: op.count }, (_, index) => idOf(index)) : op.failedIndexes.map(idOf);
    const outputs: unknown[] = new Array(op.count);
    const failures: MapFailure[] = [];
    let foundCount = 0;
    for (let from = 0; from < ids.length; from += readsPerPage) {
      for (const run of await readForTurn(turn, () => turn.host.store.runsById(ids.slice(from, from + readsPerPage)))) {
        const index = run.parentIndex as number;
        foundCount += 1;
        if (run.status === "completed") outputs[index] = decode(run.output as string);
        else failures.push({ index, runId: run.id, error: errorOf(run) });
      }
    }
    if (foundCount < ids.length) {
      const problem = `${ids.length - foundCount} of the children of map "${key}" no longer exist, so their results cannot be read.`;
      return turn.pauseWithError(problem, null);
    }
    failures.sort((a, b) => a.index - b.index);
    if (op.phase === "settled") return call.resolve(Object.assign(outputs, { failures }));
    const problem = `${failures.length} of the ${op.count} children of map "${key}" failed, ${op.tolerate} were tolerated.`;
    call.reject(new PermanentError(problem, { cause: failures[0]?.error }));
  } catch (error) {
    call.reject(error);
  }
}

function errorOf(run: RunRecord): Error {
  const failure = run.error === null ? null : (decode(run.error) as Failure);
  if (run.status === "canceled") return new RunCanceledError(run.id, failure?.message, failure?.code);
  return new RunFailedError(run.id, failure === null ? undefined : reviveFailure(failure));
}
