/** Shared by the tests of graphs that are built at run time: worlds with jobs, nodes by name, logs as text. */
import type { JobDefinition, RunHandle } from "pawl";
import { type TestPawl, testPawl } from "pawl/testing";
import { onTestFinished } from "vitest";
import { type StoreKind, testDatabase } from "../support/databases.js";
import { type MortalWorker, silent, type World, world } from "../support/virtual-worlds.js";

/** Opens Pawl on a virtual clock with one worker for these jobs; it is closed when the test ends. */
export async function startJobs(...jobs: JobDefinition[]): Promise<TestPawl> {
  const t = await testPawl({ workflows: [], jobs, logger: silent });
  onTestFinished(() => t.close());
  return t;
}

export interface JobWorld extends World {
  readonly worker1: MortalWorker;
  /** Runs everything that is due, and advances the clock, until nothing is scheduled any more. */
  runToEnd(by?: MortalWorker): Promise<void>;
  jobWorker(...jobs: JobDefinition[]): Promise<MortalWorker>;
}

/** Opens one database of this kind, with a worker for these jobs. */
export async function jobWorld(kind: StoreKind, ...jobs: JobDefinition[]): Promise<JobWorld> {
  const database = await testDatabase(kind);
  onTestFinished(() => database.drop());
  const w = await world(kind, database.url);
  const jobWorker = (...jobsOfWorker: JobDefinition[]) => w.worker([], { jobs: jobsOfWorker });
  const worker1 = await jobWorker(...jobs);
  const runToEnd = async (by = worker1) => {
    for (let due = await by.settle(); due !== null; due = await by.settle()) w.clock.moveTo(due);
  };
  return { ...w, worker1, jobWorker, runToEnd };
}

export type AnyRun = RunHandle<any, any>;

/** Returns each node with its state and its latest attempt, in the order of the graph: "validate completed 1". */
export async function nodesOf(run: AnyRun): Promise<string[]> {
  return (await run.nodes()).map(({ name, state, attempt }) => `${name} ${state} ${attempt}`);
}

export async function idOf(run: AnyRun, name: string): Promise<string> {
  const match = (await run.nodes()).find((node) => node.name === name);
  if (match === undefined) throw new Error(`There is no node "${name}".`);
  return match.id;
}

/** Returns the log as lines such as "node.dispatched charge 2", with the names of the nodes. */
export async function eventsOf(run: AnyRun): Promise<string[]> {
  const names = new Map((await run.nodes()).map(({ id, name }) => [id, name]));
  return (await run.history()).map(({ type, node, attempt }) =>
    [type, ...(node === null ? [] : [names.get(node) ?? node]), ...(attempt === null ? [] : [attempt])].join(" "),
  );
}

/** Returns the runs that execute the attempts of a graph's nodes, oldest first. */
export async function nodeRunsOf(w: { readonly pawl: World["pawl"] }, job: string) {
  return (await w.pawl.runs({ workflow: `job:${job}`, limit: 1_000 })).runs.reverse();
}
