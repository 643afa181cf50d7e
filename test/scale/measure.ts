/** Asks every question and counts the statements, and what they touch. */
import { Pawl } from "pawl";
import type { RunQuery, Store, StoreOptions } from "../../src/store/contract/store.js";
import { openStore } from "../support/databases.js";
import { silent } from "../support/virtual-worlds.js";
import { openCounter } from "./counters.js";
import { type Asked, type Question, questions } from "./questions.js";
import type { SeededRuns } from "./seed.js";
import type { SeededKind } from "./seed-dialects.js";
import { type CapturedStatement, captureStatements } from "./statement-capture.js";

export interface Cost {
  readonly statements: number;
  /** Pages or rows, see `Counter.unit`. */
  readonly touched: number;
  /** The statements with their plans, the most expensive first, to find out why. */
  readonly details: readonly string[];
}

export interface MeasureOptions {
  /** As behind a pooler, where the planner is free to choose; PostgreSQL only. */
  readonly isPooled?: boolean;
  /** Examines and counts at most this many runs instead of 10,000. */
  readonly maxExamined?: number;
  readonly only?: (question: string) => boolean;
}

export async function measureQuestions(
  kind: SeededKind,
  url: string,
  seeded: SeededRuns,
  options: MeasureOptions = {},
): Promise<ReadonlyMap<string, Cost>> {
  const captured = await captureQuestions(kind, url, seeded, options);
  const counter = await openCounter(kind, url, options.isPooled);
  try {
    const costs = new Map<string, Cost>();
    for (const [question, statements] of captured) {
      const counted: [touched: number, detail: string][] = [];
      for (const statement of statements) {
        const { count, plan } = await counter.count(statement);
        counted.push([count, `${count} ${counter.unit}: ${shorten(statement)}\n${plan}`]);
      }
      counted.sort(([a], [b]) => b - a);
      costs.set(question, {
        statements: statements.length,
        touched: counted.reduce((sum, [count]) => sum + count, 0),
        details: counted.map(([, detail]) => detail),
      });
    }
    return costs;
  } finally {
    await counter.close();
  }
}

/** The statements that each question sends. */
export async function captureQuestions(
  kind: SeededKind,
  url: string,
  seeded: SeededRuns,
  { isPooled = false, maxExamined, only = () => true }: MeasureOptions = {},
): Promise<ReadonlyMap<string, readonly CapturedStatement[]>> {
  const options: StoreOptions = { notify: false, ...(kind === "postgres" && { pooled: isPooled }) };
  const store = await openStore(kind, url, options);
  try {
    const pawl = new Pawl(store, silent);
    const asked: Asked = { pawl, store, seeded, ids: await findIds(pawl) };
    if (maxExamined !== undefined) lowerLimits(store, maxExamined);
    const captured = new Map<string, readonly CapturedStatement[]>();
    for (const [name, question] of Object.entries(questions).filter(([question]) => only(question)))
      captured.set(name, await captureReads(kind, question, asked));
    return captured;
  } finally {
    await store.close();
  }
}

/** A new connection sends settings first; they touch no table. */
async function captureReads(kind: SeededKind, question: Question, asked: Asked): Promise<CapturedStatement[]> {
  const statements = await captureStatements(kind, () => question(asked));
  return statements.filter(({ sql }) => /pawl_/.test(sql) && /^\s*(\/\*.*?\*\/\s*)?(SELECT|WITH)\b/is.test(sql));
}

const shorten = ({ sql, values }: CapturedStatement) =>
  `${sql.replaceAll(/\s+/g, " ").slice(0, 1_500)} ${JSON.stringify(values).slice(0, 300)}`;

async function findIds(pawl: Pawl): Promise<Asked["ids"]> {
  const first = async (filter: Parameters<Pawl["runs"]>[0]) => {
    const { runs } = await pawl.runs({ ...filter, limit: 10 });
    const run = runs.find(({ workflow }) => workflow !== "flow_long");
    if (run === undefined) throw new Error(`No seeded run matches ${JSON.stringify(filter)}.`);
    return run;
  };
  const child = await pawl.runs({ workflow: "flow_7", status: "completed", limit: 500 });
  const parentId = child.runs.find((run) => run.parentId !== null)?.parentId ?? null;
  if (parentId === null) throw new Error("No seeded run has a parent.");
  return {
    completed: (await first({ status: "completed" })).id,
    waiting: (await first({ status: "waiting" })).id,
    paused: (await first({ status: "paused" })).id,
    failed: (await first({ status: "failed" })).id,
    owned: (await first({ status: "running" })).id,
    due: (await first({ status: "pending" })).id,
    parent: parentId,
  };
}

/** Makes the questions cut their answers earlier, so that a small table is enough to see that they do. */
function lowerLimits({ maintenance }: Store, limit: number): void {
  const { questions: answers } = maintenance;
  const { runs, statusCounts, errorGroups } = answers;
  answers.runs = (query: RunQuery) => runs.call(answers, { ...query, maxExamined: limit });
  answers.statusCounts = () => statusCounts.call(answers, { cap: limit });
  answers.errorGroups = (options) => errorGroups.call(answers, { ...options, cap: limit });
  const { runSamples, backlog } = maintenance;
  maintenance.backlog = () => backlog.call(maintenance, { cap: limit });
  maintenance.runSamples = (workflow, page) => runSamples.call(maintenance, workflow, { ...page, limit });
}
