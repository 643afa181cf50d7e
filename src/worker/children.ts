/** Runs started by a run: single children and maps. Each has its own log and may run on any worker. */
import { decode, encode } from "../core/codec.js";
import { dismissMap } from "../core/dismissal.js";
import { InvalidInputError, PermanentError, RunCanceledError, RunFailedError } from "../core/errors.js";
import { dataOf, event, type NewEvent } from "../core/event.js";
import { type Failure, reviveFailure } from "../core/failure.js";
import { guarded } from "../core/guarded.js";
import { childRunId } from "../core/ids.js";
import { checkName } from "../core/names.js";
import { indexes } from "../core/ranges.js";
import { childNode } from "../core/scope.js";
import type { MapOp } from "../core/state.js";
import { asDefinition } from "../define/as-definition.js";
import type { ChildHandle, ChildOptions, ChildWorkflow, MapFailure, MapOptions, MapResult } from "../define/context.js";
import { anyHero } from "../define/definition.js";
import { checkHero } from "../define/hero.js";
import { validate } from "../define/standard-schema.js";
import type { NewRun, RunRecord } from "../store/store.js";
import type { Deferred } from "./answers.js";
import { insist } from "./insist.js";
import type { Scope } from "./scope.js";
import type { Turn } from "./turn.js";

/** More children than this are born in several commits. */
const birthsPerCommit = 500;
const readsPerPage = 500;

export async function startChild<I, O>(
  scope: Scope,
  child: ChildWorkflow<I, O>,
  input: I,
  options: ChildOptions = {},
): Promise<ChildHandle<O>> {
  const { turn } = scope;
  const key = scope.key(checkName("step", options.name ?? nameOf(child)));
  const runId = childId(turn, key, 0);
  const op = turn.recorded(key, "child");
  // Asked for now, so that it counts as a thing the code did; the answer is kept until somebody wants it.
  const answer = guarded(scope.ask(key) as Promise<O>);
  const handle: ChildHandle<O> = { runId, result: () => answer };
  if (op !== undefined || turn.halted) {
    turn.stir();
    return handle;
  }
  const born = await turn.begins(key, () => birth(turn, child, key, options).then((make) => make(input, null)));
  turn.outbox.starts.push({ ...born, id: runId, due: { kind: "now" } });
  turn.outbox.open(event("child.started", { node: key }, { runId, workflow: nameOf(child) }));
  turn.stir();
  return handle;
}

export async function mapChildren<I, O>(
  scope: Scope,
  child: ChildWorkflow<I, O>,
  items: readonly I[],
  options: MapOptions = {},
): Promise<MapResult<O>> {
  if (!Array.isArray(items)) throw new InvalidInputError("ctx.map takes an array of items.");
  const { turn } = scope;
  const key = scope.key(checkName("step", options.name ?? nameOf(child)));
  const count = items.length;
  const concurrency = checkCount("concurrency", options.concurrency ?? Math.max(1, count), 1);
  const tolerate = checkCount("tolerate", options.tolerate ?? 0, 0);
  const op = turn.recorded(key, "map");
  if (op !== undefined && op.count !== count) {
    turn.diverge([key], `the map "${key}" began with ${op.count} items and now has ${count}`);
  }
  const answer = scope.ask(key) as Promise<MapResult<O>>;
  if (!turn.halted && (op === undefined || (op.phase === "open" && op.spawned < count))) {
    await turn.begins(key, () =>
      spawn(turn, child, items, {
        key,
        count,
        concurrency,
        tolerate,
        spawned: op?.spawned ?? 0,
        settled: op?.settled ?? 0,
        isNew: op === undefined,
      }),
    );
  }
  turn.stir();
  return answer;
}

interface Spawning {
  readonly key: string;
  readonly count: number;
  readonly concurrency: number;
  readonly tolerate: number;
  readonly spawned: number;
  readonly settled: number;
  readonly isNew: boolean;
}

/** All children are born at once; those beyond the concurrency are held until others have ended. */
async function spawn<I, O>(turn: Turn, child: ChildWorkflow<I, O>, items: readonly I[], map: Spawning): Promise<void> {
  const { key, count, concurrency, tolerate } = map;
  const make = await birth(turn, child, key, {});
  // All of them first: one item that cannot be stored must not leave half a map behind.
  const births: Omit<NewRun, "id" | "due">[] = [];
  for (let index = map.spawned; index < count; index += 1) births.push(await make(items[index] as I, index));
  let spawned = map.spawned;
  let isNew = map.isNew;
  do {
    const upTo = Math.min(count, spawned + birthsPerCommit);
    // Children that ended meanwhile have made room already.
    const settled = (turn.state.ops.get(key) as MapOp | undefined)?.settled ?? 0;
    const released = Math.min(upTo, concurrency + settled);
    for (let index = spawned; index < upTo; index += 1) {
      const born = births[index - map.spawned] as Omit<NewRun, "id" | "due">;
      turn.outbox.starts.push({
        ...born,
        id: childId(turn, key, index),
        due: { kind: index < released ? "now" : "held" },
      });
    }
    const fixed = { workflow: nameOf(child), count, concurrency, tolerate };
    turn.outbox.events.push(
      isNew
        ? event("map.started", { node: key }, { ...fixed, spawned: upTo, released })
        : event("map.spawned", { node: key }, { spawned: upTo, released }),
    );
    isNew = false;
    spawned = upTo;
    if (!(await turn.submit([]))) return;
  } while (spawned < count && (turn.state.ops.get(key) as MapOp).phase === "open");
}

/** Everything about a child but its input and id, looked up once. */
async function birth<I, O>(turn: Turn, child: ChildWorkflow<I, O>, key: string, options: ChildOptions) {
  const definition = typeof child === "string" ? null : asDefinition(child);
  const name = nameOf(child);
  const registered =
    definition === null
      ? await insist(
          () => turn.host.registration(name),
          () => turn.over,
        )
      : null;
  const schema = definition?.inputSchema ?? null;
  const hero = checkHero(name, definition?.hero ?? registered?.hero ?? anyHero, options.hero);
  const fixed = {
    workflow: name,
    version: definition?.version ?? registered?.version ?? "",
    queue: definition?.queue ?? registered?.queue ?? name,
    priority: options.priority ?? definition?.priority ?? 0,
    heroType: hero?.type ?? null,
    heroId: hero?.id ?? null,
    heroKey: null,
    tags: options.tags ?? definition?.tags ?? [],
    startKey: null,
    parentId: turn.runId,
    parentNode: childNode(turn.state, key),
  };
  return async (input: unknown, parentIndex: number | null): Promise<Omit<NewRun, "id" | "due">> => {
    if (schema !== null) await validate(schema, input, `input of child workflow "${name}"`);
    return { ...fixed, parentIndex, input: encode(input, { what: `the input of child workflow "${name}"` }) };
  };
}

const childId = (turn: Turn, key: string, index: number) => childRunId(turn.runId, childNode(turn.state, key), index);

const nameOf = (child: ChildWorkflow<any, any>): string =>
  typeof child === "string" ? child : asDefinition(child).name;

function checkCount(name: string, value: number, least: number): number {
  if (Number.isInteger(value) && value >= least && value <= Number.MAX_SAFE_INTEGER) return value;
  if (value === Number.POSITIVE_INFINITY) return Number.MAX_SAFE_INTEGER;
  throw new InvalidInputError(`The ${name} of a map is a whole number of at least ${least}, not ${value}.`);
}

/** Lets held children run now that others have ended. Looked at after every commit, so that nothing is missed. */
export function releaseChildren(turn: Turn): void {
  for (const [key, op] of turn.state.ops) {
    if (op.kind !== "map" || op.phase !== "open") continue;
    const allowed = Math.min(op.spawned, op.concurrency + op.settled);
    if (allowed <= op.released) continue;
    for (let index = op.released; index < allowed; index += 1) turn.outbox.release.push(childId(turn, key, index));
    turn.outbox.events.push(event("map.released", { node: key }, { released: allowed }));
    // Noted here already: it must not be said twice while it is on its way into the log.
    op.released = allowed;
  }
}

/** A map that has failed sends its children home. */
export function dismissFailedMaps(turn: Turn, events: readonly NewEvent[]): void {
  for (const settled of events) {
    const op = settled.type === "map.settled" ? turn.state.ops.get(settled.node ?? "") : undefined;
    if (op?.kind !== "map" || settled.node === null) continue;
    const { completed, failed } = dataOf(settled, "map.settled");
    const failures = [...indexes(failed)];
    if (op.failed.length + failures.length <= op.tolerate) continue;
    const ended = new Set([...indexes(completed), ...failures]);
    for (const mail of dismissMap(turn.runId, turn.state, settled.node, op, ended)) turn.outbox.mail.push(mail);
  }
}

/** Reads the children's results in pages, when the map as a whole has an answer. */
export async function settleMap(turn: Turn, key: string, op: MapOp, call: Deferred): Promise<void> {
  try {
    const ids =
      op.phase === "settled"
        ? Array.from({ length: op.count }, (_, index) => childId(turn, key, index))
        : op.failed.map((index) => childId(turn, key, index));
    const outputs: unknown[] = new Array(op.count);
    const failures: MapFailure[] = [];
    for (let from = 0; from < ids.length; from += readsPerPage) {
      for (const run of await insist(
        () => turn.host.store.runsById(ids.slice(from, from + readsPerPage)),
        () => turn.over,
      )) {
        const index = run.parentIndex as number;
        if (run.status === "completed") outputs[index] = decode(run.output as string);
        else failures.push({ index, runId: run.id, error: errorOf(run) });
      }
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
  if (run.status === "canceled") return new RunCanceledError(run.id, failure?.message);
  return new RunFailedError(run.id, failure === null ? undefined : reviveFailure(failure));
}
