/**
 * The ancestry hashes prove which outputs an output was computed from: an auditor can recompute them, and finds what
 * was changed.
 */
import { job, Pawl, PermanentError } from "pawl";
import { expect, test } from "vitest";
import type { StoredEvent } from "../../src/store/contract/store.js";
import type { StoreKind } from "../support/databases.js";
import { forMemoryAnd } from "../support/effort.js";
import { silent } from "../support/virtual-worlds.js";
import { idOf, jobWorld } from "./job-world.js";
import { wrongHashes } from "./recompute-hashes.js";

const values = [1, "zwei", null, undefined, new Date(3), 4n, { list: [5, { "6": 6, a: '\u2028 "output":7' }] }];

/** Completes a diamond of seven outputs; B fails at first and is retried. */
async function completeDiamond(kind: StoreKind) {
  const behavior = { fails: true };
  const value = job("Value", (args: { n: number }) => values[args.n]);
  const fragile = job("Fragile", (args: { n: number }) => {
    if (behavior.fails) throw new PermanentError("no");
    return values[args.n];
  });
  const w = await jobWorld(kind, value, fragile);
  const run = await w.pawl.build("proof", (g) => {
    const a = g.node("A", { job: value, args: { n: 0 } });
    const b = g.node("B", { job: fragile, args: { n: 1 }, dependsOn: a });
    const parts = g.fanOut([2, 3, 4, 5], { name: (n) => `C${n}`, job: value, args: (n) => ({ n }), dependsOn: a });
    g.node("D", { job: value, args: { n: 6 }, dependsOn: [b, ...parts] });
  });
  await w.runToEnd();
  behavior.fails = false;
  await run.reattempt("B");
  await w.runToEnd();
  const rows = await w.store.log(run.id, { after: 0, limit: 1_000 });
  return { w, run, rows, dag: JSON.parse(await run.exportDag()) };
}

forMemoryAnd("postgres", (kind) => {
  test("every hash can be recomputed from the log alone, even after reattempts", async () => {
    const { w, run, rows, dag } = await completeDiamond(kind);
    expect(await run.status()).toBe("completed");
    expect(wrongHashes(rows, dag)).toEqual({ wrong: [], checked: 7 });
    const hashes = (await run.executions()).flatMap(({ ancestryHash }) => ancestryHash ?? []);
    expect(new Set(hashes).size).toBe(7);
    for (const hash of hashes) expect(hash).toMatch(/^[0-9a-f]{64}$/);
    expect((await w.pawl.verify(run.id)).differences).toEqual([]);
  });
});

test("an attempt that failed has no hash", async () => {
  const { run } = await completeDiamond("memory");
  const b = await idOf(run, "B");
  const ofB = (await run.executions()).filter(({ node }) => node === b);
  expect(ofB.map(({ state, ancestryHash }) => [state, ancestryHash === null])).toEqual([
    ["failed", true],
    ["completed", false],
  ]);
});

test("a changed output is detected at its node and at all nodes after it", async () => {
  const { run, rows, dag } = await completeDiamond("memory");
  for (const [name, from, to, detected] of [
    ["A", '"output":1', '"output":2', ["A", "B", "C2", "C3", "C4", "C5", "D"]],
    ["C2", '"output":null', '"output":0', ["C2", "D"]],
    ["D", '"list":[5', '"list":[6', ["D"]],
  ] as const) {
    const id = await idOf(run, name);
    const changed = rows.map((row) =>
      row.node === id && row.type === "step.completed" ? { ...row, data: row.data?.replace(from, to) ?? null } : row,
    );
    expect(changed).not.toEqual(rows);
    const names = wrongHashes(changed, dag).wrong.map((one) => dag.nodes[one].name);
    expect(names.sort()).toEqual([...detected].sort());
  }
});

test("a changed attempt, a changed hash and a changed dependency are detected", async () => {
  const { run, rows, dag } = await completeDiamond("memory");
  const [b, d] = [await idOf(run, "B"), await idOf(run, "D")];
  const attempt = rows.map((row) => (row.node === b && row.type === "step.completed" ? { ...row, attempt: 1 } : row));
  expect(wrongHashes(attempt, dag).wrong).toEqual([b, d]);
  const hash = rows.map((row) =>
    row.node === b ? { ...row, data: row.data?.replace(/"hash":"./, '"hash":"x') ?? null } : row,
  );
  expect(wrongHashes(hash, dag).wrong).toEqual([b]);
  const rewired = structuredClone(dag);
  rewired.nodes[d].depends_on = rewired.nodes[d].depends_on.slice(1);
  expect(wrongHashes(rows, rewired).wrong).toEqual([d]);
});

test("verify() detects a changed output, too", async () => {
  const { w, run } = await completeDiamond("memory");
  const c2 = await idOf(run, "C2");
  const changed = (row: StoredEvent) =>
    row.node === c2 ? { ...row, data: row.data?.replace('"output":null', '"output":0') ?? null } : row;
  const logs = async (ids: readonly string[]) =>
    new Map([...(await w.store.logs(ids))].map(([id, rows]) => [id, rows.map(changed)]));
  const tampered = new Proxy(w.store, {
    get: (store, name) => {
      const member = name === "logs" ? logs : Reflect.get(store, name);
      return typeof member === "function" ? member.bind(store) : member;
    },
  });
  const { differences } = await new Pawl(tampered, silent).verify(run.id);
  expect(differences).toMatchObject([{ kind: "log.ancestry", text: expect.stringContaining(`"${c2}"`) }]);
});

test("a skipped node has no hash, and the hashes after it use the remaining predecessors", async () => {
  const fine = job("Fine", () => "fine");
  const broken = job("Broken", () => Promise.reject(new PermanentError("no")));
  const w = await jobWorld("memory", fine, broken);
  const run = await w.pawl.build("skipping", (g) => {
    g.node("bad", { job: broken });
    g.node("good", { job: fine, dependsOn: null });
    g.node("end", { job: fine, dependsOn: ["bad", "good"] });
  });
  await w.runToEnd();
  await run.skip();
  await w.runToEnd();
  expect(await run.status()).toBe("completed");
  const rows = await w.store.log(run.id, { after: 0, limit: 1_000 });
  expect(wrongHashes(rows, JSON.parse(await run.exportDag()))).toEqual({ wrong: [], checked: 2 });
  expect((await w.pawl.verify()).differences).toEqual([]);
});
