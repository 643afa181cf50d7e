import { expect, test } from "vitest";
import { bearerToken } from "../bearer-token.js";
import { serveNode, testMount } from "./harness.js";

testMount(serveNode);

test("the other paths are the server's own", async () => {
  const app = await serveNode();
  expect(await (await app.fetch("/")).text()).toBe("This is the shop.\n");
});

test("a short token is refused", () => {
  expect(() => bearerToken("", { access: "all" })).toThrow("Set PAWL_TOKEN to a secret of at least 32 characters");
});
