// What the PostgreSQL store writes and how fast: statements, WAL bytes and rows per second of the hot commits.
//
//   npm run build && node bench/postgres-commit.mjs [postgres://…/an-empty-database]
//
// The tables are made in a schema of their own, which is dropped at the end. PAWL_DIST names another build.

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { performance } from "node:perf_hooks";
import { pathToFileURL } from "node:url";
import pg from "pg";

const dist = process.env.PAWL_DIST ?? new URL("../dist", import.meta.url).pathname;
const { openPostgres } = await import(pathToFileURL(resolve(dist, "store/postgres/index.js")).href);

const url = process.argv[2] ?? process.env.PAWL_TEST_POSTGRES_URL ?? "postgres://postgres@127.0.0.1:5432/postgres";
const schema = `pawl_bench_${process.pid}`;
const store = await openPostgres(url, { schema, notify: false });
await store.migrate();
const admin = new pg.Client({ connectionString: url });
await admin.connect();

const walBytes = async () => BigInt((await admin.query("SELECT pg_current_wal_insert_lsn() - '0/0' AS at")).rows[0].at);

/** Version 7, as the client makes them: in the order of time. */
function newId() {
  const hex = Date.now().toString(16).padStart(12, "0") + randomBytes(10).toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-7${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20)}`;
}

const newRun = (kind) => ({
  id: newId(),
  workflow: "orders",
  version: "",
  queue: "orders",
  priority: 0,
  input: '{"order":12345}',
  heroType: null,
  heroId: null,
  heroKey: null,
  tags: [],
  startKey: null,
  parentId: null,
  parentNode: null,
  parentIndex: null,
  parentAttempt: null,
  due: { kind },
});
const event = { type: "step.completed", node: "charge", attempt: 1, outcome: "completed", data: '{"value":12345}' };
const keep = { kind: "keep" };
const finish = { kind: "finish", status: "completed", output: '{"ok":true}', error: null, startedAt: "now" };
const park = {
  kind: "park",
  status: "waiting",
  waiting: '["sleep"]',
  startedAt: "now",
  wakeAt: null,
  wakeInMs: 3_600_000,
};
const transition = (runId, after, next, events = [event], messages = []) => ({
  runId,
  afterSeq: after,
  events,
  next,
  drainedInboxIds: [],
  newChildren: [],
  messages,
  releasedChildIds: [],
  cursors: [],
});

const worker = { name: "bench", host: "here", pid: 1, routes: [], leaseMs: 600_000 };
const fence = await store.registerWorker({ ...worker, id: "bench" });
let statements = 0;
const commit = async (transitions, starts = [], by = fence) => {
  statements += 1;
  const result = await store.commit({ fence: by, transitions, starts });
  if (result.kind !== "committed") throw new Error(JSON.stringify(result));
};

async function measure(name, rounds, perRound, work) {
  for (let round = 0; round < 20; round += 1) await work(round);
  const wal = await walBytes();
  statements = 0;
  const began = performance.now();
  for (let round = 20; round < 20 + rounds; round += 1) await work(round);
  const ms = performance.now() - began;
  const bytes = Number((await walBytes()) - wal) / rounds / perRound;
  report(name, rounds, perRound, ms, bytes, Math.max(statements, rounds));
  return ms / rounds;
}

function report(name, rounds, perRound, ms, bytes, sent) {
  const cells = [
    name.padEnd(38),
    `${(ms / rounds).toFixed(2)} ms per round`.padStart(19),
    `${Math.round((1000 * rounds * perRound) / ms)} /s`.padStart(11),
    `${(sent / rounds / perRound).toFixed(3)} statements`.padStart(18),
    `${Math.round(bytes)} B of WAL`.padStart(15),
  ];
  console.log(cells.join("  "));
}

// Right after a checkpoint, every page that is touched goes into the WAL as a whole; the first rounds pay for that.
await admin.query("CHECKPOINT");

const scale = Number(process.env.BENCH_SCALE ?? 1);

// The reference: one row, one prepared insert, one connection.
await admin.query(`CREATE TABLE ${schema}.bare (LIKE ${schema}.pawl_events INCLUDING ALL)`);
const bareRun = newId();
const bareText = `INSERT INTO ${schema}.bare (run_id, at, seq, span, attempt, type, node, outcome, data) VALUES ($1, $2, $3, 1, 1, $4, $5, $6, $7)`;
const bare = await measure("bare one-row insert", 1500 * scale, 1, (round) =>
  admin.query({
    name: "bare",
    text: bareText,
    values: [bareRun, Date.now(), round + 1, event.type, event.node, event.outcome, event.data],
  }),
);

for (const size of [1, 10, 100, 256]) {
  const runs = Array.from({ length: size }, () => newRun("owned"));
  await commit([], runs);
  const rounds = Math.ceil((size === 1 ? 1500 : size === 10 ? 800 : 300) * scale);
  const ms = await measure(`events only, batch ${size}`, rounds, size, (round) =>
    commit(runs.map(({ id }) => transition(id, round, keep))),
  );
  if (size === 1) console.log(`  W3: ${(ms / bare).toFixed(2)} x the bare insert`);
}

const oneRun = newRun("owned");
await commit([], [oneRun]);
await measure("one run, 1000 events in one row", 30 * scale, 1000, (round) =>
  commit([transition(oneRun.id, round * 1000, keep, Array(1000).fill(event))]),
);

for (const size of [1, 100]) {
  const rounds = Math.ceil((size === 1 ? 600 : 150) * scale);
  await measure(`start by client, batch ${size}`, rounds, size, () =>
    commit(
      [],
      Array.from({ length: size }, () => newRun("now")),
      null,
    ),
  );
  const claimed = [];
  const claim = { fence, routes: [{ workflow: "orders", version: "" }], limit: size, limitPerRoute: size };
  await measure(`claim, ${size}`, rounds, size, async () => {
    const { tasks } = await store.claim(claim);
    if (tasks.length !== size) throw new Error(`claimed ${tasks.length}`);
    claimed.push(tasks.map(({ run }) => run.id));
  });
  await measure(`event + park, batch ${size}`, Math.floor(rounds / 2) - 20, size, () =>
    commit(claimed.pop().map((id) => transition(id, 0, park))),
  );
  await measure(`event + finish, batch ${size}`, Math.floor(rounds / 2) - 20, size, () =>
    commit(claimed.pop().map((id) => transition(id, 0, finish))),
  );
  await measure(`start owned, then event + finish, ${size}`, rounds, size, async () => {
    const runs = Array.from({ length: size }, () => newRun("owned"));
    await commit([], runs);
    await commit(runs.map(({ id }) => transition(id, 0, finish)));
  });
  await measure(`start owned, event, event + finish, ${size}`, rounds, size, async () => {
    const runs = Array.from({ length: size }, () => newRun("owned"));
    await commit([], runs);
    await commit(runs.map(({ id }) => transition(id, 0, keep)));
    await commit(runs.map(({ id }) => transition(id, 1, finish)));
  });
  const parent = newRun("owned");
  await commit([], [parent]);
  const messages = [{ to: parent.id, kind: "child", data: '{"index":1}' }];
  await measure(`  … and a message to one parent, ${size}`, rounds, size, async () => {
    const runs = Array.from({ length: size }, () => newRun("owned"));
    await commit([], runs);
    await commit(runs.map(({ id }) => transition(id, 0, finish, [event], messages)));
  });
}

await store.close();
await admin.query(`DROP SCHEMA ${schema} CASCADE`);
await admin.end();
