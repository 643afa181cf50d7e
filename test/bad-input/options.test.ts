/** In JavaScript nobody else notices a misspelt option, and without its idempotency key a customer is charged twice. */
import { workflow } from "pawl";
import { expect, test } from "vitest";
import { errorOf, start } from "../function-style/support.js";

const charge = workflow("charge", (ctx, options: object) => ctx.step("charge", () => 1, options));

test("an option that does not exist is refused, by whoever is given it", async () => {
  const t = await start(charge);
  const misspelt = (options: object) => options as never;
  const refusals = [
    await errorOf(t.pawl.start(charge, {}, misspelt({ idempotencykey: "k" }))),
    await errorOf(t.pawl.startMany(charge, [{}], misspelt({ prio: 1 }))),
    await errorOf(t.pawl.workflow("charge").trigger({}, misspelt({ herro: 1 }))),
    await errorOf(t.pawl.build("g", (g) => g.node("a", { job: "A" }), misspelt({ onNodeFailur: "continue" }))),
    await errorOf((async () => t.pawl.worker(misspelt({ workflows: [charge], concurency: 1 })))()),
    await errorOf((async () => workflow("x", misspelt({ retires: 1 }), async () => {}))()),
  ];
  expect(refusals.map(({ code }: any) => code)).toEqual(Array(6).fill("INVALID_INPUT"));
  expect(refusals.map(({ message }) => message)).toEqual([
    'A start of "charge" has an option "idempotencykey", which does not exist.',
    'A start of "charge" has an option "prio", which does not exist.',
    'A start of "charge" has an option "herro", which does not exist.',
    'A start of "g" has an option "onNodeFailur", which does not exist.',
    'A worker has an option "concurency", which does not exist.',
    'Workflow "x" has an option "retires", which does not exist.',
  ]);
  expect((await t.pawl.runs()).runs).toEqual([]);

  const run = await t.pawl.start(charge, { retires: 3 });
  await t.settle();
  expect((await run.get()).error?.message).toBe('Step "charge" has an option "retires", which does not exist.');
});
