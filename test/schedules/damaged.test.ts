import { schedule, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { expect, onTestFinished, test } from "vitest";

const errors: unknown[][] = [];
const logger = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: (...args: unknown[]) => void errors.push(args),
};

test.each([
  ["a definition that is no JSON", { definition: "{" }],
  ["a state that is no JSON", { state: "null" }],
  ["a time zone that this runtime does not know", { zone: "Europe/Atlantis" }],
])("a schedule with %s is paused with the reason, and the others fire", async (_, damage) => {
  const runs: string[] = [];
  const note = workflow("note", async (_ctx, name: string) => void runs.push(name));
  const timing = { cron: "0 * * * *", timeZone: "Europe/Berlin" };
  const good = schedule("good", { workflow: note, input: "good", ...timing });
  const bad = schedule("bad", { workflow: note, input: "bad", ...timing });
  const t = await testPawl({
    workflows: [note],
    schedules: [good, bad],
    logger,
    startAt: new Date("2026-11-01T12:30:00Z"),
  });
  onTestFinished(() => t.close());
  const { schedules } = t.pawl.internals.store;
  const [row] = await schedules.byName(["bad"]);
  if (row === undefined) throw new Error("The schedule was not registered.");
  const { zone, ...columns } = { zone: undefined, ...damage };
  const definition = zone === undefined ? row.definition : row.definition.replace("Europe/Berlin", zone);
  await schedules.apply({
    changes: [
      {
        name: "bad",
        expectedRevision: row.revision,
        row: { ...row, definition, ...columns },
        occurrences: [],
        starts: [],
      },
    ],
  });
  errors.length = 0;
  await t.advance("2 hours");
  expect(runs).toEqual(["good", "good"]);
  const [stored] = await schedules.byName(["bad"]);
  expect(stored).toMatchObject({ status: "paused", nextAt: null });
  expect(errors.map(([text]) => text)).toEqual(['Schedule "bad" cannot be fired and is paused.']);
  const { schedules: listed } = await t.pawl.schedules.list();
  expect(listed.map(({ name, status }) => `${name} ${status}`)).toEqual(["bad paused", "good active"]);
});
