/** The OpenAPI document, as a generator of clients reads it. */
import { expect, test } from "vitest";
import { serve } from "./served-pawl.js";

test("the address of the server and a path lead to the route, also behind a base path", async () => {
  const { url, get } = await serve({ basePath: "/pawl" });
  for (const path of ["/api/openapi.json", "/pawl/api/openapi.json"]) {
    const { servers, paths } = (await get(path)).json;
    const server = new URL(servers[0].url, url + path).href.replace(/\/$/, "");
    expect(paths).toHaveProperty("/api/v1/me");
    expect((await fetch(`${server}/api/v1/me`)).status).toBe(200);
  }
});
