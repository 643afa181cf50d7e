/** Who may do what: every route with every kind of access. What is refused changes nothing. */
import { workflow } from "pawl";
import { beforeEach, describe, expect, test } from "vitest";
import { permissions, type Requirement } from "../../src/http/access.js";
import { type EventfulWorld, eventfulWorld, localRequest } from "./eventful-world.js";
import { routeCases } from "./route-cases.js";
import { serve } from "./served-pawl.js";

type Outcome = "passes" | 401 | 403 | 500;

interface AccessCase {
  readonly name: string;
  readonly decide: () => unknown;
  readonly outcomeOf: (requirement: Requirement) => Outcome;
}

/** Written apart from `isAllowed`, which is what is tested. */
const onlyWith =
  (...allowed: readonly Requirement[]) =>
  (requirement: Requirement): Outcome =>
    requirement === "nothing" || allowed.includes(requirement) ? "passes" : 403;
const everythingIs = (outcome: Outcome) => (requirement: Requirement) =>
  requirement === "nothing" ? "passes" : outcome;

const withAccess = (name: string, access: unknown, outcomeOf: AccessCase["outcomeOf"]): AccessCase => ({
  ...{ name, outcomeOf },
  decide: () => ({ user: "ada", access }),
});

const accessCases: readonly AccessCase[] = [
  { name: "null", decide: () => null, outcomeOf: everythingIs(401) },
  { name: "undefined", decide: () => undefined, outcomeOf: everythingIs(401) },
  { name: "a rejected promise", decide: () => Promise.reject(new Error("no")), outcomeOf: everythingIs(500) },
  {
    name: "a thrown error",
    decide: () => {
      throw new Error("the login service is down");
    },
    outcomeOf: everythingIs(500),
  },
  withAccess("all", "all", everythingIs("passes")),
  withAccess("read", "read", onlyWith("read", "payloads")),
  withAccess("[]", [], onlyWith("read")),
  withAccess("{}", {}, onlyWith("read")),
  ...permissions.flatMap((permission) => [
    withAccess(`["${permission}"]`, [permission], onlyWith("read", permission)),
    withAccess(`{ ${permission}: true }`, { [permission]: true }, onlyWith("read", permission)),
    withAccess(`{ ${permission}: false }`, { [permission]: false }, onlyWith("read")),
  ]),
  // What is no access at all allows nothing: a user's mistake must not open a door.
  ...[
    ...["al", "ALL", "", "read ", "write", 42, 0, true, false, null, undefined, Symbol("all"), () => "all"],
    ...[
      ["all"],
      ["read"],
      ["cancle"],
      [["cancel"]],
      { all: true },
      { cancel: "yes" },
      { cancel: 1 },
      new Map(),
      new Date(),
    ],
    ...[Object.create({ cancel: true }), JSON.parse('{"__proto__":{"cancel":true}}'), Promise.resolve("all")],
  ].map((access) => withAccess(`the access ${describeValue(access)}`, access, everythingIs(403))),
  ...["all", true, 42, {}, [], { user: "ada" }, { Access: "all" }].map(
    (decision): AccessCase => ({
      name: `the decision ${describeValue(decision)}`,
      decide: () => decision,
      outcomeOf: everythingIs(403),
    }),
  ),
];

function describeValue(value: unknown): string {
  return value !== null && typeof value === "object" && !Array.isArray(value)
    ? `${Object.prototype.toString.call(value)} ${JSON.stringify(value)}`
    : typeof value === "object"
      ? JSON.stringify(value)
      : String(value);
}

async function outcomeOf(response: Response): Promise<Outcome> {
  await response.body?.cancel();
  return ([401, 403, 500] as readonly number[]).includes(response.status) ? (response.status as Outcome) : "passes";
}

/** Everything that is stored about runs, workflows and queues, byte for byte. */
async function storedBytes({ pawl }: EventfulWorld): Promise<string> {
  const { store } = pawl.internals;
  const { runs } = await store.maintenance.questions.runs({ limit: 1_000, maxExamined: 10_000 });
  const ids = runs.map(({ id }) => id);
  const { schedules } = await pawl.schedules.list();
  const ledgers = await Promise.all(schedules.map(({ name }) => pawl.schedules.occurrences(name)));
  const queues = (await pawl.queues()).map(({ oldestAgeMs: _changesByItself, ...queue }) => queue);
  const [logs, inbox] = [await store.logs(ids), await store.inbox(ids)];
  const tables = [runs, await store.tasks(ids), [...logs], [...inbox], await pawl.workflows(), queues];
  return JSON.stringify([...tables, schedules, ledgers, await pawl.limits.list()]);
}

describe("with", () => {
  let world: EventfulWorld;
  beforeEach(async () => {
    world = await eventfulWorld();
  });

  for (const { name, decide, outcomeOf: expected } of accessCases)
    test(`${name}, each route passes or is refused as it says, and a refusal changes nothing`, async () => {
      const handle = world.handler({ authorize: decide as () => null });
      const outcomes: Record<string, Outcome> = {};
      for (const { route, path, body } of routeCases(world.runs)) {
        const before = route.method !== "GET" ? await storedBytes(world) : "";
        const outcome = await outcomeOf(await handle(localRequest(route.method, path, { body })));
        outcomes[route.operationId] = outcome;
        if (route.method !== "GET" && outcome !== "passes") expect(await storedBytes(world)).toBe(before);
      }
      const all = routeCases(world.runs).map(({ route }) => [route.operationId, expected(route.requires)]);
      expect(outcomes).toEqual(Object.fromEntries(all));
    });
});

test("the walk would notice a refused command that was carried out", async () => {
  const world = await eventfulWorld();
  const before = await storedBytes(world);
  await world.pawl.run(world.runs.waiting).signal("other", 1);
  expect(await storedBytes(world)).not.toBe(before);
});

test("every route has a requirement, and only the health of the server needs no access", async () => {
  const { runs } = await eventfulWorld();
  const open = routeCases(runs).filter(({ route }) => route.requires === "nothing");
  expect(open.map(({ path }) => path)).toEqual(["/live", "/ready"]);
  const known = new Set<string>(["nothing", "read", ...permissions]);
  expect(routeCases(runs).filter(({ route }) => !known.has(route.requires))).toEqual([]);
  // Whatever changes something needs more than to be let in.
  const changing = routeCases(runs).filter(({ route }) => route.method !== "GET");
  expect(changing.filter(({ route }) => route.requires === "read" || route.requires === "payloads")).toEqual([]);
});

test("without access, a path that does not exist looks like any other", async () => {
  const { handler, runs } = await eventfulWorld();
  const handle = handler({ authorize: () => null });
  const bodyOf = async (method: string, path: string) => {
    const response = await handle(localRequest(method, path, method === "POST" ? { body: {} } : {}));
    return [response.status, await response.text()];
  };
  const refusal = await bodyOf("GET", `/api/v1/runs/${runs.paused}`);
  expect(refusal[0]).toBe(401);
  for (const path of ["/api/v1/runs/no-such-run", "/api/v2", "/", "/%2e%2e/etc", "/live/", "/%6cive", "//live"])
    expect(await bodyOf("GET", path)).toEqual(refusal);
  expect(await bodyOf("POST", "/api/v1/runs")).toEqual(refusal);
});

test("a response of authorize is passed through as it is", async () => {
  const headers = new Headers({ location: "https://login.example.com/?from=pawl", "x-own": "1" });
  headers.append("set-cookie", "state=1; HttpOnly");
  headers.append("set-cookie", "nonce=2; Secure");
  const { url, pawl, post } = await serve({
    authorize: () => new Response("Log in first.", { status: 302, headers }),
    registered: [workflow("quick", async () => 1)],
  });
  const response = await fetch(`${url}/api/v1/runs`, { redirect: "manual" });
  expect([response.status, await response.text()]).toEqual([302, "Log in first."]);
  expect(response.headers.get("location")).toBe("https://login.example.com/?from=pawl");
  expect(response.headers.get("x-own")).toBe("1");
  expect(response.headers.getSetCookie()).toEqual(["state=1; HttpOnly", "nonce=2; Secure"]);
  await post("/api/v1/workflows/quick/runs").catch(() => {});
  expect((await pawl.runs()).runs).toEqual([]);
});

test("the log records the user of authorize, and the body cannot change it", async () => {
  const world = await eventfulWorld();
  const { pawl, runs } = world;
  const handle = world.handler({ authorize: () => ({ user: "grace", access: "all" }) });
  const post = (path: string, body: object) =>
    handle(localRequest("POST", `/api/v1/${path}`, { body: { by: "mallory", reason: "so", ...body } }));
  const byIn = async (id: string) =>
    (await pawl.run(id).history()).flatMap(({ type, data }) => (type === "command.accepted" ? [data.by] : []));

  const commands: readonly (readonly [string, object])[] = [
    [`runs/${runs.waiting}/signals`, { name: "other" }],
    [`runs/${runs.waiting}/pause`, {}],
    [`runs/${runs.waiting}/resume`, {}],
    [`runs/${runs.waiting}/cancel`, {}],
    [`runs/${runs.stuck}/skip`, {}],
    [`runs/${runs.chain}/resume-at`, { step: "second" }],
    [`runs/${runs.built}/start`, {}],
  ];
  for (const [path, body] of commands) expect([path, (await post(path, body)).status]).toEqual([path, 200]);
  expect(await byIn(runs.waiting)).toEqual(["grace", "grace", "grace", "grace"]);
  for (const id of [runs.stuck, runs.chain, runs.built]) expect(await byIn(id)).toContain("grace");
  const everyone = await Promise.all(Object.values(runs).map(byIn));
  expect(everyone.flat()).not.toContain("mallory");

  const startedBy = async (response: Response) => {
    const { id, runs: [first] = [{ id }] } = (await response.json()) as any;
    return (await pawl.run(first.id).get()).startedBy?.by;
  };
  expect(await startedBy(await post("workflows/order/runs", {}))).toBe("grace");
  expect(await startedBy(await post("workflows/order/runs/batch", { inputs: [1] }))).toBe("grace");
  expect(await startedBy(await post("graphs", { name: "g", nodes: [{ name: "a", job: "ImportRow" }] }))).toBe("grace");
  expect(await startedBy(await post(`runs/${runs.failed}/retry`, {}))).toBe("grace");
  await pawl.resumeQueue("orders");
  await post("queues/orders/pause", {});
  expect((await pawl.queues()).find(({ name }) => name === "orders")?.paused?.by).toBe("grace");
});

test("without a user, the log records the name that the body gives", async () => {
  const { handler, pawl, runs } = await eventfulWorld();
  const handle = handler({ authorize: () => ({ access: "all" }) });
  await handle(localRequest("POST", `/api/v1/runs/${runs.waiting}/pause`, { body: { by: "a script" } }));
  expect((await pawl.run(runs.waiting).history()).at(-2)?.data).toMatchObject({ by: "a script" });
});
