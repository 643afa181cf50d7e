import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { serveNode } from "../http-node/harness.js";
import { runProgram } from "../python/harness.js";

const script = fileURLToPath(new URL("story.sh", import.meta.url));

test("a shell script starts, approves and awaits an order, and finds it again", async () => {
  const { pawl, variables } = await serveNode();
  const first = await runProgram("sh", [script, "A-1", "cart-77"], variables);
  const [run] = (await pawl.runs({ workflow: "order" })).runs;
  expect(first).toEqual({
    code: 0,
    stdout: `run ${run?.id}\n{"status":"completed","output":{"shelf":"shelf of A-1","approvedBy":"finance"},"error":null}\n`,
    stderr: "",
  });
  const second = await runProgram("sh", [script, "A-1", "cart-77"], variables);
  expect(second).toMatchObject({ code: 0, stdout: first.stdout });
  expect((await pawl.runs({ workflow: "order" })).runs).toHaveLength(1);
});

test("what the API refuses is printed", async () => {
  const { variables } = await serveNode();
  const refused = await runProgram("sh", [script, "A-1", "cart-77"], { ...variables, PAWL_TOKEN: "wrong" });
  expect(refused).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining('"code":"UNAUTHORIZED"') });
  const quoted = await runProgram("sh", [script, 'A"1', "cart-77"], variables);
  expect(quoted).toMatchObject({ code: 2, stdout: "" });
});
