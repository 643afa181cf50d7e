import { expect, test } from "vitest";
import { serveNode } from "../http-node/harness.js";
import { runProgram, runPython } from "./harness.js";

test("a program in Python starts, approves and awaits an order, and finds it again", async () => {
  const { pawl, variables } = await serveNode();
  const first = await runPython("order.py", ["Ä-1", "cart-77"], variables);
  expect(first).toMatchObject({ code: 0, stderr: "" });
  const [run] = (await pawl.runs({ workflow: "order" })).runs;
  expect(first.stdout.split("\n")).toEqual([
    `started ${run?.id}`,
    'result {"shelf": "shelf of \\u00c4-1", "approvedBy": "finance"}',
    "read order completed Ä-1 shop",
    "completed orders ['cart-77']",
    "",
  ]);
  const second = await runPython("order.py", ["Ä-1", "cart-77"], variables);
  expect(second.stdout).toBe(first.stdout.replace("started", "found"));
  expect((await pawl.runs({ workflow: "order" })).runs).toHaveLength(1);
});

test("what the API refuses is printed with its code", async () => {
  const { variables } = await serveNode();
  await runPython("order.py", ["A-1", "cart-77"], variables);
  const reused = await runPython("order.py", ["B-2", "cart-77"], variables);
  expect(reused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^KEY_REUSED \(422\): /) });
  const refused = await runPython("order.py", ["A-1", "cart-77"], { ...variables, PAWL_TOKEN: "wrong" });
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/^UNAUTHORIZED \(401\): /) });
});

test("a program that is not installed is named", async () => {
  await expect(runProgram("python3", [], { PATH: "/nowhere" })).rejects.toThrow(
    "This test runs python3, which is not installed here or not on the PATH.",
  );
});
