/**
 * What each question may touch, however many runs there are. A question that is not in the table touches an index range and a
 * page: `aPage`. Nothing may cost more than 10,000 entries that are examined or counted, four times where the question is
 * about four statuses.
 */
import { questions } from "./questions.js";

export interface Bound {
  /** Pages of tables and indexes, on PostgreSQL. A lookup by id is three pages of an index and one of the table. */
  readonly pages: number;
  /** Rows of tables, indexes and temporary tables, on MariaDB and MySQL. */
  readonly rows: number;
}

/** Up to 50 runs, next to each other in an index. */
const aPage: Bound = { pages: 200, rows: 400 };
/** A few hundred runs that are examined by an index; those that match are looked up by id. */
const someExamined: Bound = { pages: 1_500, rows: 6_000 };
/** About 50 or 100 open runs: each has a task that is looked up, too. */
const openPage: Bound = { pages: 1_500, rows: 1_000 };
/** One in five or ten open runs matches, so that several hundred are looked up by id. */
const openExamined: Bound = { pages: 3_000, rows: 3_000 };
/** 10,000 tasks are examined, and the runs of one in twenty are looked up by id. */
const tasksExamined: Bound = { pages: 3_000, rows: 12_000 };
/** 10,000 entries of an index. */
const indexExamined: Bound = { pages: 500, rows: 22_000 };
/** 10,000 runs, each on a page of its own. */
const runsExamined: Bound = { pages: 11_000, rows: 11_000 };
/** 10,000 open runs, which are looked up by id. */
const openRunsExamined: Bound = { pages: 42_000, rows: 22_000 };

const exceptions: Readonly<Record<string, Bound>> = {
  "runs({ status: pending })": openExamined,
  "runs({ status: running })": openExamined,
  "runs({ status: waiting })": openPage,
  "runs({ status: paused })": openPage,
  "runs({ status: completed })": { pages: 400, rows: 400 },
  "runs({ status: waiting }), two pages": openPage,
  "runs({ active: false })": { pages: 400, rows: 400 },
  "runs({ workflow, active: true })": tasksExamined,
  "runs({ workflow, status: pending })": tasksExamined,
  "runs({ workflow, status: running })": tasksExamined,
  "runs({ workflow, status: waiting })": tasksExamined,
  "runs({ workflow, status: paused })": someExamined,
  "runs({ workflow, status: completed })": { pages: 400, rows: 400 },
  "runs({ workflow, status: failed })": someExamined,
  "runs({ workflow, status: canceled })": someExamined,
  "runs({ workflow: absent, status: failed })": indexExamined,
  "runs({ workflow: absent, active: true })": tasksExamined,
  "runs({ tag: common })": someExamined,
  "runs({ tag: rare })": runsExamined,
  "runs({ tag: absent })": runsExamined,
  "runs({ tag: absent, workflow })": runsExamined,
  "runs({ tag: absent, active: true })": openRunsExamined,
  "runs({ parentId: null })": someExamined,
  "runs({ createdBefore, active: true })": openExamined,
  "runs({ fingerprint })": someExamined,
  "runs({ fingerprint, workflow })": someExamined,
  "runs({ fingerprint, status: paused })": someExamined,
  // Failed and paused runs are two ranges of one index.
  "runs({ fingerprint: rare })": indexExamined,
  "runs({ fingerprint: absent })": indexExamined,
  "runs({ explain, active: true })": openPage,
  // 10,000 open runs, and 10,000 entries each of paused, failed and canceled ones. MariaDB copies and sorts them.
  "counts()": { pages: 42_000, rows: 130_000 },
  "errors()": { pages: 1_000, rows: 65_000 },
  // The rows of 60 or 2,881 minutes, 20 workflows each.
  "figures()": { pages: 200, rows: 1_300 },
  "figures({ workflow })": { pages: 200, rows: 1_300 },
  "figures(), two days": { pages: 5_000, rows: 58_000 },
  // The backlog of each queue is counted up to 10,000, and 12,000 runs are due in one of them.
  "queues()": { pages: 1_500, rows: 65_000 },
  "metrics(workflow)": { pages: 6_000, rows: 70_000 },
  "metrics(workflow, since a month ago)": { pages: 16_000, rows: 85_000 },
  "store.tasks() of 50 runs": openPage,
};

for (const question of Object.keys(exceptions))
  if (questions[question] === undefined) throw new Error(`There is no question "${question}".`);

export const boundOf = (question: string): Bound => exceptions[question] ?? aPage;
