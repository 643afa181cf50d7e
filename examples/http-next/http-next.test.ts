import { connect, type Pawl } from "pawl";
import { afterAll, expect, test, vi } from "vitest";
import { type TestDatabase, testDatabase } from "../../test/support/databases.js";
import { silent } from "../../test/support/virtual-worlds.js";
import { type Mounted, testMount, token } from "../http-node/harness.js";
import { order } from "../http-node/order.js";

/** What Next.js calls: with the request, and with the variable part of the path. */
type RouteHandler = (request: Request, context: { readonly params: Promise<{ path: string[] }> }) => Promise<Response>;

let database: TestDatabase;
const clients: Pawl[] = [];
let mounted: Promise<Mounted> | undefined;

/** The route connects once in its process, so all tests have the same database. */
async function mount(): Promise<Mounted> {
  database = await testDatabase("sqlite");
  vi.stubEnv("DATABASE_URL", database.url);
  vi.stubEnv("PAWL_TOKEN", token);
  const worker = await connect(database.url, { logger: silent });
  await worker.worker({ workflows: [order] }).start();
  const route = await import("./app/pawl/[...path]/route.js");
  const { sharedPawl } = await import("./lib/pawl.js");
  clients.push(worker, await sharedPawl());
  const handlers: Record<string, RouteHandler> = { GET: route.GET, POST: route.POST };
  return {
    fetch: (path, init = {}) => {
      const handler = handlers[init.method ?? "GET"] as RouteHandler;
      const params = Promise.resolve({ path: path.split("/").slice(2) });
      return handler(new Request(`https://shop.example${path}`, init), { params });
    },
  };
}

afterAll(async () => {
  for (const client of clients) await client.close();
  await database.drop();
  vi.unstubAllEnvs();
});

testMount(() => (mounted ??= mount()));

test("Next.js runs the route on Node, and asks it every time", async () => {
  const route = await import("./app/pawl/[...path]/route.js");
  expect(route).toMatchObject({ runtime: "nodejs", dynamic: "force-dynamic" });
});
