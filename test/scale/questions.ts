/** The questions whose cost must not depend on how many runs there are. */
import type { Pawl } from "pawl";
import type { Store } from "../../src/store/contract/store.js";
import { fingerprints, longRun, rareFingerprint, rareTag, type SeededRuns } from "./seed.js";

export interface Asked {
  readonly pawl: Pawl;
  readonly store: Store;
  readonly seeded: SeededRuns;
  /** Ids of seeded runs, by what is special about them. */
  readonly ids: Readonly<Record<"completed" | "waiting" | "paused" | "failed" | "owned" | "due" | "parent", string>>;
}

export type Question = (asked: Asked) => Promise<unknown>;

const hourMs = 3_600_000;
const workflow = "flow_3";
const firstFingerprint = fingerprints[3] as string;

/** A page of runs, and the page after it. */
const secondPage =
  (filter: Parameters<Pawl["runs"]>[0]): Question =>
  async ({ pawl }) => {
    const { next } = await pawl.runs(filter);
    if (next === null) throw new Error(`There is no second page of ${JSON.stringify(filter)}.`);
    return pawl.runs({ ...filter, cursor: next });
  };

const runs =
  (filter: Parameters<Pawl["runs"]>[0]): Question =>
  ({ pawl }) =>
    pawl.runs(filter);

const history =
  (after: number): Question =>
  ({ pawl, seeded }) =>
    pawl.run(seeded.longRunId).history({ after, limit: 100 });

const statuses = ["pending", "running", "waiting", "paused", "completed", "failed", "canceled"] as const;

export const questions: Readonly<Record<string, Question>> = {
  "runs()": runs({}),
  "runs(), two pages": secondPage({}),
  ...Object.fromEntries(statuses.map((status) => [`runs({ status: ${status} })`, runs({ status })])),
  "runs({ status: waiting }), two pages": secondPage({ status: "waiting" }),
  "runs({ status: failed }), two pages": secondPage({ status: "failed" }),
  "runs({ active: true })": runs({ active: true }),
  "runs({ active: false })": runs({ active: false }),
  "runs({ workflow })": runs({ workflow }),
  "runs({ workflow }), two pages": secondPage({ workflow }),
  "runs({ workflow, active: true })": runs({ workflow, active: true }),
  ...Object.fromEntries(
    statuses.map((status) => [`runs({ workflow, status: ${status} })`, runs({ workflow, status })]),
  ),
  "runs({ workflow: absent })": runs({ workflow: "absent" }),
  "runs({ workflow: absent, status: failed })": runs({ workflow: "absent", status: "failed" }),
  "runs({ workflow: absent, active: true })": runs({ workflow: "absent", active: true }),
  "runs({ hero })": runs({ hero: { type: "User", id: "user-7" } }),
  "runs({ hero: of many runs })": runs({ hero: { type: "Shop", id: "main" } }),
  "runs({ hero: of many runs }), two pages": secondPage({ hero: { type: "Shop", id: "main" } }),
  "runs({ hero: absent })": runs({ hero: { type: "User", id: "absent" } }),
  "runs({ hero, active: true })": runs({ hero: { type: "User", id: "user-7" }, active: true }),
  "runs({ tag: common })": runs({ tag: "eu" }),
  "runs({ tag: rare })": runs({ tag: rareTag.tag }),
  "runs({ tag: absent })": runs({ tag: "absent" }),
  "runs({ tag: absent, workflow })": runs({ tag: "absent", workflow }),
  "runs({ tag: absent, active: true })": runs({ tag: "absent", active: true }),
  "runs({ parentId })": ({ pawl, ids }) => pawl.runs({ parentId: ids.parent }),
  "runs({ parentId: of many runs })": ({ pawl, seeded }) => pawl.runs({ parentId: seeded.longRunId }),
  "runs({ parentId: null })": runs({ parentId: null }),
  "runs({ createdAfter })": ({ pawl, seeded }) => pawl.runs({ createdAfter: seeded.now - hourMs }),
  "runs({ createdBefore })": ({ pawl, seeded }) => pawl.runs({ createdBefore: seeded.now - hourMs }),
  "runs({ createdBefore, status: failed })": ({ pawl, seeded }) =>
    pawl.runs({ createdBefore: seeded.now - hourMs, status: "failed" }),
  "runs({ createdBefore, workflow })": ({ pawl, seeded }) =>
    pawl.runs({ createdBefore: seeded.now - hourMs, workflow }),
  "runs({ createdBefore, active: true })": ({ pawl, seeded }) =>
    pawl.runs({ createdBefore: seeded.now - hourMs, active: true }),
  "runs({ fingerprint })": runs({ fingerprint: firstFingerprint }),
  "runs({ fingerprint: rare })": runs({ fingerprint: rareFingerprint }),
  "runs({ fingerprint: absent })": runs({ fingerprint: "0000000000000000" }),
  "runs({ fingerprint, workflow })": runs({ fingerprint: firstFingerprint, workflow }),
  "runs({ fingerprint, status: paused })": runs({ fingerprint: firstFingerprint, status: "paused" }),
  "runs({ idempotencyKey, workflow })": ({ pawl }) => pawl.runs({ idempotencyKey: "key-101", workflow: "flow_1" }),
  "runs({ idempotencyKey })": runs({ idempotencyKey: "key-101" }),
  "runs({ idempotencyKey: absent })": runs({ idempotencyKey: "absent" }),
  "runs({ explain })": runs({ explain: true }),
  "runs({ explain, active: true })": runs({ explain: true, active: true }),
  "counts()": ({ pawl }) => pawl.counts(),
  "errors()": ({ pawl }) => pawl.errors(),
  "figures()": ({ pawl }) => pawl.figures(),
  "figures({ workflow })": ({ pawl }) => pawl.figures({ workflow }),
  "figures(), two days": ({ pawl, seeded }) => pawl.figures({ from: seeded.now - 48 * hourMs, to: seeded.now }),
  "workers()": ({ pawl }) => pawl.workers(),
  "queues()": ({ pawl }) => pawl.queues(),
  "metrics(workflow)": ({ pawl }) => pawl.metrics(workflow),
  "metrics(workflow, since a month ago)": ({ pawl, seeded }) =>
    pawl.metrics(workflow, { since: seeded.now - 30 * 24 * hourMs }),
  "workflows()": ({ pawl }) => pawl.workflows(),
  "run.get()": ({ pawl, ids }) => pawl.run(ids.completed).get(),
  "run.status()": ({ pawl, ids }) => pawl.run(ids.waiting).status(),
  "run.explain(), completed": ({ pawl, ids }) => pawl.run(ids.completed).explain(),
  "run.explain(), waiting": ({ pawl, ids }) => pawl.run(ids.waiting).explain(),
  "run.explain(), paused": ({ pawl, ids }) => pawl.run(ids.paused).explain(),
  "run.explain(), owned": ({ pawl, ids }) => pawl.run(ids.owned).explain(),
  "run.explain(), due": ({ pawl, ids }) => pawl.run(ids.due).explain(),
  "the first 100 events of 50,000": history(0),
  "100 events in the middle of 50,000": history(longRun.events / 2 + 5),
  "the last 100 events of 50,000": history(longRun.events - 100),
  "the number of the last event of 50,000": ({ store, seeded }) =>
    store.maintenance.questions.lastEventSeq(seeded.longRunId),
  "store.tasks() of 50 runs": async ({ pawl, store }) => {
    const page = await pawl.runs({ active: true });
    return store.tasks(page.runs.map(({ id }) => id));
  },
};
