/** Limits over HTTP: what is in use and what waits, overrides, and why a run does not begin. */
import { limit, workflow } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { gate, until } from "../support/waiting.js";
import { type HttpAnswer, type ServedOptions, serve } from "./served-pawl.js";

const perTenant = limit("per tenant/€", { key: "input.tenant", concurrency: 1 });
const paced = limit("paced", { concurrency: 5, rate: { limit: 60, per: "1m", burst: 59 } });
const path = `/api/v1/limits/${encodeURIComponent(perTenant.name)}`;

async function world(options: ServedOptions = {}) {
  const done = gate();
  onTestFinished(() => done.open());
  const sync = workflow("sync", { limits: [perTenant, paced] }, (ctx, _: { tenant: string }) =>
    ctx.step("work", () => done.opened),
  );
  const served = await serve({ registered: [sync], ...options });
  const call = async (method: string, at: string, body?: unknown): Promise<HttpAnswer> => {
    const response = await fetch(`${served.url}${at}`, {
      method,
      ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, json: await response.json() };
  };
  return { ...served, sync, call, done };
}

test("limits, their keys, holders and waiting runs are read, a page at a time", async () => {
  const { pawl, sync, get } = await world();
  const runs = await pawl.startMany(
    sync,
    ["a", "a", "b", "c"].map((tenant) => ({ tenant })),
  );
  await until(async () => {
    const { json } = await get(path);
    return json.inUse === 3 && json.waiting === 1;
  });
  const { json: all } = await get("/api/v1/limits");
  expect(all.limits).toMatchObject([
    { name: "paced", concurrency: 5, rate: { limit: 60, perMs: 60_000, burst: 59 }, inUse: 3, override: null },
    {
      name: perTenant.name,
      concurrency: 1,
      rate: null,
      while: "executing",
      inUse: 3,
      waiting: 1,
      waitingCapped: false,
    },
  ]);
  const first = await get(`${path}?limit=2`);
  expect(first.json.lanes.map(({ key, inUse, waiting }: any) => [key, inUse, waiting])).toEqual([
    ["a", 1, 1],
    ["b", 1, 0],
  ]);
  const rest = await get(`${path}?limit=2&cursor=${first.json.next}`);
  expect([rest.json.lanes.map(({ key }: any) => key), rest.json.next]).toEqual([["c"], null]);
  const { json: one } = await get(`${path}?key=a`);
  const [{ holders }] = one.lanes;
  const holder = holders[0].runId;
  expect(holders).toEqual([{ runId: holder, step: null, since: expect.any(String) }]);
  const blocked = runs.slice(0, 2).find(({ id }) => id !== holder);
  expect((await get(`/api/v1/runs/${blocked?.id}/explanation`)).json).toMatchObject({
    because: "limited",
    limited: { limit: perTenant.name, key: "a", inUse: 1, position: 1, waiting: 1, holders: [{ runId: holder }] },
  });
  expect((await get(`/api/v1/runs/${holder}/explanation`)).json).not.toHaveProperty("limited");
  expect((await get("/api/v1/limits/none")).json).toMatchObject({ status: 404, code: "LIMIT_NOT_FOUND" });
  expect((await get(`${path}?cursor=none`)).status).toBe(400);
});

test("an override is put with its author, reason and end, replaced, and deleted", async () => {
  const lines: string[] = [];
  const { pawl, call, get } = await world({
    logger: { debug() {}, info: (text) => void lines.push(String(text)), warn() {}, error() {} },
  });
  const put = await call("PUT", "/api/v1/limits/paced/override", {
    ...{ concurrency: 2, rate: { limit: 10, per: "1s" }, until: "2 hours", by: "ada", reason: "Their incident." },
  });
  expect(put).toMatchObject({
    status: 200,
    json: {
      ...{ name: "paced", concurrency: 5, inForce: { concurrency: 2, rate: { limit: 10, perMs: 1_000, burst: 0 } } },
      override: { concurrency: 2, by: "ada", reason: "Their incident." },
    },
  });
  const { until: end, at } = put.json.override;
  expect(Date.parse(end) - Date.parse(at)).toBe(2 * 3_600_000);
  expect((await get("/api/v1/limits/paced")).json.override).toEqual(put.json.override);
  await call("PUT", "/api/v1/limits/paced/override", { concurrency: null, until: "2100-01-01T00:00:00Z" });
  expect((await pawl.limits.list())[0]).toMatchObject({
    inForce: { concurrency: null, rate: { limit: 60 } },
    override: { until: new Date("2100-01-01T00:00Z"), by: null },
  });
  const cleared = await call("DELETE", "/api/v1/limits/paced/override?by=ada&reason=over");
  expect([cleared.status, cleared.json.override, cleared.json.inForce.concurrency]).toEqual([200, null, 5]);
  expect(lines.filter((line) => line.includes("override"))).toEqual([
    'The override of limit "paced" was set by ada (Their incident.).',
    'The override of limit "paced" was set by an operator.',
    'The override of limit "paced" was cleared by ada (over).',
  ]);
});

test("the user that the server knows is the author, whatever the body says", async () => {
  const { call, pawl } = await world({ authorize: () => ({ user: "grace", access: ["limits"] }) });
  await call("PUT", "/api/v1/limits/paced/override", { concurrency: 2, by: "ada" });
  expect((await pawl.limits.list())[0]?.override?.by).toBe("grace");
});

test("what limits.override() refuses is refused with its sentence, and an unknown limit is 404", async () => {
  const { call, pawl } = await world();
  const refusals: readonly (readonly [object, string])[] = [
    [{}, "changes nothing"],
    [{ concurrency: 0 }, "between 1 and"],
    [{ rate: { limit: 1 } }, "per"],
    [{ rate: { limit: 1, per: "soon" } }, "soon"],
    [{ concurrency: 1, until: "2100-01-01T00:00:00" }, "zone"],
    [{ concurency: 1 }, 'has no field "concurency"'],
  ];
  for (const [body, sentence] of refusals) {
    const { status, json } = await call("PUT", "/api/v1/limits/paced/override", body);
    expect([status, json.detail]).toEqual([400, expect.stringContaining(sentence)]);
  }
  for (const method of ["PUT", "DELETE"]) {
    const answer = await call(
      method,
      "/api/v1/limits/none/override",
      method === "PUT" ? { concurrency: 1 } : undefined,
    );
    expect([answer.status, answer.json.code]).toEqual([404, "LIMIT_NOT_FOUND"]);
  }
  expect((await pawl.limits.list())[0]?.override).toBeNull();
});
