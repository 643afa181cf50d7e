/** What crashTest makes of the callbacks that it is given. */
import { signal, workflow } from "pawl";
import { crashTest, testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";

const one = workflow("one", (ctx) => ctx.step("only", () => "done"));
/** As what asks a database does. */
const later = <T>(value: T) => new Promise<T>((resolve) => setImmediate(resolve, value));

test("a comparison that takes time is waited for, and its no is a no", async () => {
  await expect(crashTest(one, undefined, { compare: () => later(false) })).rejects.toThrow(
    'A crash before commit 1 of "one" made compare() say no (it was ',
  );
  const report = await crashTest(one, undefined, { compare: () => later(true) });
  expect(report).toMatchObject({ output: "done", points: 2 * report.commits });
});

test("a comparison that fails fails the test", async () => {
  const compare = async () => {
    throw new Error("the books cannot be read");
  };
  await expect(crashTest(one, undefined, { compare })).rejects.toThrow("the books cannot be read");
});

test("the setup and the driving are waited for, too", async () => {
  const approved = signal<string>("approved");
  const waits = workflow("waits", (ctx) => ctx.waitForSignal(approved));
  let ready = false;
  const t = await testPawl({ workflows: [waits] });
  onTestFinished(() => t.close());
  const report = await t.crashTest(waits, undefined, {
    setup: async () => {
      ready = false;
      ready = await later(true);
    },
    drive: async (run) => {
      await later(null);
      await run.signal(approved, ready ? "ready" : "not ready", { key: "once" });
    },
  });
  expect(report.output).toBe("ready");
});
