import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a misspelt option of testPawl",
    code: "await testPawl({ workflow: [order] });",
    compiler:
      "Object literal may only specify known properties, but 'workflow' does not exist in type 'TestPawlOptions'. Did you mean to write 'workflows'?",
  },
  {
    what: "a duration in a unit that does not exist",
    code: `const t = await testPawl({ workflows: [order] });
await t.advance("2 dayz");`,
    sentence:
      'The duration "2 dayz" has an unknown unit "dayz"; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a misspelt method",
    code: `const t = await testPawl({ workflows: [order] });
await t.speedrn(await t.pawl.start(order, { sku: "A-1", cents: 1 }));`,
    compiler: "Property 'speedrn' does not exist on type 'TestPawl'. Did you mean 'speedrun'?",
  },
  {
    what: "an id in place of a run",
    code: `const t = await testPawl({ workflows: [order] });
const run = await t.pawl.start(order, { sku: "A-1", cents: 1 });
await t.speedrun(run.id);`,
    compiler: "Argument of type 'string' is not assignable to parameter of type 'RunHandle<any, any>'.",
  },
  {
    what: "testPawl that is not awaited",
    code: "testPawl({ workflows: [order] }).pawl;",
    compiler: "Property 'pawl' does not exist on type 'Promise<TestPawl>'.",
  },
  {
    what: "a signal that the test does not send",
    code: `const waits = workflow("mistake", (ctx) => ctx.waitForSignal("approved"));
const t = await testPawl({ workflows: [waits] });
await t.speedrun(await t.pawl.start(waits));`,
    sentence: 'Run <id> waits for signal "approved"',
  },
  {
    what: "the input of a crash test of the wrong type",
    code: `const t = await testPawl({ workflows: [order] });
await t.crashTest(order, { sku: 5, cents: 1 });`,
    compiler: "Type 'number' is not assignable to type 'string'.",
  },
  {
    what: "a misspelt option of a crash test",
    code: `const t = await testPawl({ workflows: [order] });
await t.crashTest(order, { sku: "A-1", cents: 1 }, { pionts: 5 });`,
    compiler:
      "Object literal may only specify known properties, but 'pionts' does not exist in type 'CrashTestOptions<{ sku: string; cents: number; }, { shelf: string; }>'. Did you mean to write 'points'?",
  },
];
