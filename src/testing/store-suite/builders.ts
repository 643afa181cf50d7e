/** Builds rows and batches with defaults for every field, so that a test names only the fields it is about. */

import { uuidv7 } from "../../core/naming/ids.js";
import { createTransition } from "../../core/run/transition.js";
import { randomHex } from "../../runtime/random-hex.js";
import { systemRuntime } from "../../runtime/system.js";
import { sleep } from "../../runtime/wait.js";
import type {
  ActiveStatus,
  Batch,
  Fence,
  Message,
  NewEvent,
  NewRun,
  NextTaskState,
  Route,
  StoredEvent,
  TerminalStatus,
  Transition,
  WorkerInfo,
} from "../../store/contract/store.js";

let count = 0;

/** Returns a name that no other test uses, because the tests of a topic share one database. */
export function uniqueName(stem: string): string {
  count += 1;
  return `${stem}-${process.pid}-${count}`;
}

/** Returns a UUIDv7, as clients create for new runs. */
export function newId(): string {
  return uuidv7(systemRuntime.now(), randomHex(systemRuntime, 10));
}

export function newRun(overrides: Partial<NewRun> = {}): NewRun {
  const workflow = overrides.workflow ?? uniqueName("workflow");
  return {
    id: newId(),
    workflow,
    version: "",
    queue: workflow,
    priority: 0,
    input: "null",
    heroType: null,
    heroId: null,
    heroKey: null,
    tags: [],
    startKey: null,
    parentId: null,
    parentNode: null,
    parentIndex: null,
    parentAttempt: null,
    due: { kind: "now" },
    ...overrides,
  };
}

/** Returns `howMany` new runs of one workflow, each with its own id. */
export function newRuns(howMany: number, overrides: Partial<NewRun> = {}): NewRun[] {
  const workflow = overrides.workflow ?? uniqueName("workflow");
  return Array.from({ length: howMany }, () => newRun({ ...overrides, workflow }));
}

export function event(type: string, rest: Partial<Omit<NewEvent, "type">> = {}): NewEvent {
  return { type, node: null, attempt: null, outcome: null, data: null, ...rest };
}

/** Returns events of the different types `${stem}1`, `${stem}2` … */
export function events(howMany: number, stem = "event"): NewEvent[] {
  return Array.from({ length: howMany }, (_, index) => event(`${stem}${index + 1}`, { data: `${index + 1}` }));
}

export const eventTypes = (log: readonly StoredEvent[]): string[] => log.map(({ type }) => type);

type Park = Extract<NextTaskState, { kind: "park" }>;
type Finish = Extract<NextTaskState, { kind: "finish" }>;

export function park(status: ActiveStatus = "waiting", rest: Partial<Omit<Park, "kind" | "status">> = {}): Park {
  return { kind: "park", status, waiting: null, startedAt: null, wakeAt: null, wakeInMs: null, ...rest };
}

export function finish(
  status: TerminalStatus = "completed",
  rest: Partial<Omit<Finish, "kind" | "status">> = {},
): Finish {
  return { kind: "finish", status, output: null, error: null, startedAt: null, ...rest };
}

/** Returns a transition that changes nothing (the run stays with its owner) except for `rest`. */
export function transition(runId: string, rest: Partial<Omit<Transition, "runId">> = {}): Transition {
  return { ...createTransition(runId, 0), ...rest };
}

export function batch(fence: Fence | null, transitions: readonly Transition[], starts: readonly NewRun[] = []): Batch {
  return { fence, transitions, starts };
}

export function newMessage(to: string, data: string, kind = "signal"): Message {
  return { to, kind, data };
}

export function routesOf(...runs: readonly NewRun[]): Route[] {
  const routes = new Map(runs.map(({ workflow, version }) => [`${workflow}/${version}`, { workflow, version }]));
  return [...routes.values()];
}

export function workerInfo(overrides: Partial<WorkerInfo> = {}): WorkerInfo {
  const id = overrides.id ?? uniqueName("worker");
  return { id, name: id, host: "localhost", pid: 1, port: null, routes: [], leaseMs: 60_000, ...overrides };
}

export const delay = (ms: number): Promise<void> => sleep(systemRuntime, ms);

export const byId = <T extends { readonly id: string }>(rows: readonly T[]): T[] =>
  [...rows].sort((a, b) => (a.id < b.id ? -1 : 1));
