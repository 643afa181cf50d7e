/** How crashTest calls its callbacks. */
import { signal, workflow } from "pawl";
import { crashTest, testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";

const oneStep = workflow("one", (ctx) => ctx.step("only", () => "done"));
/** Resolves later, like a query to a database. */
const resolveLater = <T>(value: T) => new Promise<T>((resolve) => setImmediate(resolve, value));

test("an asynchronous comparison is awaited, and its false fails the crash test", async () => {
  await expect(crashTest(oneStep, undefined, { compare: () => resolveLater(false) })).rejects.toThrow(
    'A crash before commit 1 of "one" made compare() say no (it was ',
  );
  const report = await crashTest(oneStep, undefined, { compare: () => resolveLater(true) });
  expect(report).toMatchObject({ output: "done", points: 2 * report.commits });
});

test("a comparison that throws fails the crash test", async () => {
  const compare = async () => {
    throw new Error("the books cannot be read");
  };
  await expect(crashTest(oneStep, undefined, { compare })).rejects.toThrow("the books cannot be read");
});

test("asynchronous setup and drive callbacks are awaited, too", async () => {
  const approved = signal<string>("approved");
  const waits = workflow("waits", (ctx) => ctx.waitForSignal(approved));
  let ready = false;
  const t = await testPawl({ workflows: [waits] });
  onTestFinished(() => t.close());
  const report = await t.crashTest(waits, undefined, {
    setup: async () => {
      ready = false;
      ready = await resolveLater(true);
    },
    drive: async (run) => {
      await resolveLater(null);
      await run.signal(approved, ready ? "ready" : "not ready", { key: "once" });
    },
  });
  expect(report.output).toBe("ready");
});
