/** Payloads in places other than inputs and outputs are hidden and redacted as well. */
import { job, workflow } from "pawl";
import { expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { serve } from "./served-pawl.js";

const order = workflow("order", async () => "done");
const pack = job("pack", async ({ card, at }: { card: string; at: Date }) => void [card, at]);
const at = { $pawl: "Date", v: "2026-01-31T09:00:00.000Z" };
const parcel = { name: "parcel", nodes: [{ name: "pack", job: "pack", args: { card: "4711", at } }], start: false };

test("the reason why a queue is paused is shown to those who may see payloads, and redacted", async () => {
  const { pawl, get } = await serve({
    registered: [order],
    authorize: ({ headers }) => ({ access: headers.has("x-all") ? "all" : [] }),
    redact: (value, { kind }) => (kind === "text" ? String(value).replace("4711", "****") : value),
  });
  await pawl.pauseQueue("order", "card 4711 is stolen");
  const reasonsFor = async (headers: Record<string, string>) => [
    (await get("/api/v1/queues", headers)).json.queues[0].paused.reason,
    (await get("/api/v1/workflows/order/metrics", headers)).json.queue.paused.reason,
  ];
  expect(await reasonsFor({})).toEqual(["[hidden]", "[hidden]"]);
  expect(await reasonsFor({ "x-all": "1" })).toEqual(["card **** is stolen", "card **** is stolen"]);
});

test("without redaction, a graph can be read, edited and written back", async () => {
  const { get, post, pawl, url } = await serve({ jobs: [pack] });
  const { id } = (await post("/api/v1/graphs", parcel)).json;
  const { dag } = (await get(`/api/v1/runs/${id}/graph`)).json;
  const [node] = Object.values<any>(dag.nodes);
  expect(node.args).toEqual({ card: "4711", at });
  await post(`/api/v1/runs/${id}/pause`);
  await until(async () => (await pawl.run(id).status()) === "paused");
  node.args.card = "0815";
  expect((await post(`/api/v1/runs/${id}/graph`, { graph: dag })).status).toBe(200);
  expect(await pawl.run(id).exportDag()).toContain("0815");
  const deep = `{ "graph": ${"[".repeat(100_000)}${"]".repeat(100_000)} }`;
  const refused = await fetch(`${url}/api/v1/runs/${id}/graph`, {
    method: "POST",
    body: deep,
    headers: { "content-type": "application/json" },
  });
  expect(refused.status).toBe(400);
});
