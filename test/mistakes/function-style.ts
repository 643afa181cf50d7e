import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a misspelt option of a workflow",
    code: 'workflow("mistake", { retires: { attempts: 3 } }, async () => {});',
    compiler:
      "Object literal may only specify known properties, and 'retires' does not exist in type 'WorkflowOptions<any> & { readonly batch?: BatchOptions<any> | undefined; readonly input?: NoSchema; readonly output?: StandardSchemaV1<void, any> | undefined; }'.",
  },
  {
    what: "a batch without a size",
    code: 'workflow("mistake", { batch: { within: "2s" } }, async (_ctx, _ns: number[]) => {});',
    compiler: "Property 'size' is missing in type '{ within: string; }' but required in type 'BatchOptions<any>'.",
  },
  {
    what: "a batch of no start",
    code: 'workflow("mistake", { batch: { size: 0, within: "2s" } }, async (_ctx, _ns: number[]) => {});',
    sentence: 'The size of the batch of workflow "mistake" must be a whole number from 1 to 10,000, not 0.',
  },
  {
    what: "a key of a batch that is no path",
    code: 'workflow("mistake", { batch: { key: "user", size: 2, within: "2s" } }, async (_ctx, _ns: number[]) => {});',
    sentence:
      'The key of the batch of workflow "mistake" must be a function, or a path that begins with input, hero or tags, such as "input.tenant", not "user".',
  },
  {
    what: "a time limit in a unit that does not exist",
    code: 'workflow("mistake", { timeout: "2 dayz" }, async () => {});',
    sentence:
      'The timeout of workflow "mistake", "2 dayz", has an unknown unit "dayz"; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a negative time limit",
    code: 'workflow("mistake", { timeout: -5 }, async () => {});',
    sentence:
      'The timeout of workflow "mistake", -5, is negative; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "an empty name",
    code: 'workflow("", async () => {});',
    sentence: 'The workflow name "" must not be empty; choose another.',
  },
  {
    what: "a promise in place of the handler",
    code: 'workflow("mistake", mail.welcome(ada));',
    compiler: "Argument of type 'Promise<void>' is not assignable to parameter of type 'Handler<void, void>'.",
  },
  {
    what: "a workflow without a name",
    code: "workflow(async () => {});",
    compiler: "Expected 2-3 arguments, but got 1.",
  },
  {
    what: "a promise in place of a step's function",
    code: `workflow("mistake", async (ctx) => {
  await ctx.step("welcome", mail.welcome(ada));
});`,
    compiler: "Argument of type 'Promise<void>' is not assignable to parameter of type '(step: StepTools) => unknown'.",
  },
  {
    what: "a misspelt method of ctx",
    code: `workflow("mistake", async (ctx) => {
  await ctx.stp("welcome", () => mail.welcome(ada));
});`,
    compiler: "Property 'stp' does not exist on type 'WorkflowContext<void>'. Did you mean 'step'?",
  },
  {
    what: "a misspelt option of a step's retry",
    code: `workflow("mistake", async (ctx) => {
  await ctx.step("welcome", () => mail.welcome(ada), { retry: { attemps: 5 } });
});`,
    compiler:
      "Object literal may only specify known properties, but 'attemps' does not exist in type 'RetryOptions'. Did you mean to write 'attempts'?",
  },
  {
    what: "a number in place of a retry",
    code: `workflow("mistake", async (ctx) => {
  await ctx.step("welcome", () => mail.welcome(ada), { retry: 5 });
});`,
    compiler: "Type 'number' has no properties in common with type 'RetryOptions'.",
  },
  {
    what: "no attempt at all",
    code: 'workflow("mistake", { retry: { attempts: 0 } }, async () => {});',
    sentence: "The retry option attempts cannot be 0; it must be 1, 2, 3… or Infinity.",
  },
  {
    what: "a date in place of a duration",
    code: `workflow("mistake", async (ctx) => {
  await ctx.sleep("nap", new Date());
});`,
    compiler: "Argument of type 'Date' is not assignable to parameter of type 'Duration'.",
  },
  {
    what: "a date in place of a duration, from untyped code",
    code: `const when: any = new Date(2030, 0, 1);
const nap = workflow("mistake", (ctx) => ctx.sleep("nap", when));
return await finished(pawl, nap);`,
    sentence:
      'The duration of sleep "nap", 2030-01-01T00:00:00.000Z, is a point in time, not a length of time (for a date there are sleepUntil(name, date) and startAt); write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a sleep without a name",
    code: `workflow("mistake", async (ctx) => {
  await ctx.sleep("2 days");
});`,
    compiler: "Expected 2-3 arguments, but got 1.",
  },
  {
    what: "a duration in place of a date",
    code: `workflow("mistake", async (ctx) => {
  await ctx.sleepUntil("nap", "2 days");
});`,
    compiler: "Argument of type 'string' is not assignable to parameter of type 'number | Date'.",
  },
  {
    what: "a duration in place of a date, from untyped code",
    code: `const when: any = "2 days";
const nap = workflow("mistake", (ctx) => ctx.sleepUntil("nap", when));
return await finished(pawl, nap);`,
    sentence:
      'ctx.sleepUntil("nap", …) needs a valid Date, or milliseconds since 1970; to wait for a length of time call ctx.sleep("nap", "2 days").',
  },
  {
    what: "a misspelt option of a wait",
    code: `workflow("mistake", async (ctx) => {
  await ctx.waitForSignal("approved", { timout: "1h" });
});`,
    compiler:
      "Object literal may only specify known properties, but 'timout' does not exist in type 'WaitOptions'. Did you mean to write 'timeout'?",
  },
  {
    what: "a payload that may be null",
    code: `workflow("mistake", async (ctx) => {
  const approval = await ctx.waitForSignal(approved);
  return approval.by;
});`,
    compiler: "'approval' is possibly 'null'.",
  },
  {
    what: "the input of a child of the wrong type",
    code: `workflow("mistake", async (ctx) => {
  await ctx.run(order, { sku: 5, cents: 1 });
});`,
    compiler: "Type 'number' is not assignable to type 'string'.",
  },
  {
    what: "one item in place of a list of items",
    code: `workflow("mistake", async (ctx) => {
  await ctx.map(order, { sku: "A-1", cents: 1 });
});`,
    compiler: "Object literal may only specify known properties, and 'sku' does not exist in type 'readonly Order[]'.",
  },
  {
    what: "a list in place of the arms of a race",
    code: `workflow("mistake", async (ctx) => {
  await ctx.race([ctx.sleep("late", "1 day"), ctx.waitForSignal("paid")]);
});`,
    compiler:
      "Argument of type 'Promise<unknown>[]' is not assignable to parameter of type 'Record<string, Promise<unknown>>'.",
  },
  {
    what: "a case that a branch does not have",
    code: `workflow("mistake", async (ctx) => {
  await ctx.branch("size", () => "lrage", { large: () => 1, small: () => 2 });
});`,
    compiler:
      'Type \'"lrage"\' is not assignable to type \'"large" | "small" | Promise<"large" | "small">\'. Did you mean \'"large"\'?',
  },
  {
    what: "a misspelt option of an error",
    code: 'throw new TransientError("busy", { retryAftr: "30s" });',
    compiler:
      "Object literal may only specify known properties, but 'retryAftr' does not exist in type 'ErrorOptions & { retryAfter?: Duration | undefined; }'. Did you mean to write 'retryAfter'?",
  },
  {
    what: "a signal handle where its name is wanted",
    code: 'throw new PauseError("wait", { resumeOn: approved });',
    compiler: "Type 'SignalHandle<{ by: string; }>' is not assignable to type 'string'.",
  },
  {
    what: "a step name with a number sign",
    code: `const bad = workflow("mistake", (ctx) => ctx.step("send#1", () => 1));
return await finished(pawl, bad);`,
    sentence:
      'The step name "send#1" contains "#", which Pawl adds itself when a name is used again ("send#2"); choose another.',
  },
  {
    what: "a result that cannot be stored",
    code: `const bad = workflow("mistake", (ctx) => ctx.step("load", () => ({ user: ada, save: () => {} })));
return await finished(pawl, bad);`,
    sentence: 'Cannot store the output of step "load": $.save is a function (save); pass plain data instead.',
  },
  {
    what: "a shape in place of a schema",
    code: 'workflow("mistake", { input: { sku: "string" } }, async () => {});',
    compiler:
      "Object literal may only specify known properties, and 'sku' does not exist in type 'StandardSchemaV1<any, any> & StandardSchemaV1<never, never>'.",
  },
  {
    what: "a shape in place of a schema, from untyped code",
    code: `const input: any = { sku: "string" };
workflow("mistake", { input }, async () => {});`,
    sentence:
      'The input of workflow "mistake" is not a Standard Schema; pass a schema made by zod, valibot, arktype…, or leave it out.',
  },
  {
    what: "an input that the schema refuses",
    code: `const checked = workflow("mistake", { input: positive }, async () => {});
await pawl.start(checked, -1);`,
    sentence: 'The input of workflow "mistake" is not valid: expected a number above 0, got -1',
  },
  {
    what: "a priority that is a word",
    code: 'workflow("mistake", { priority: "high" }, async () => {});',
    compiler: "Type 'string' is not assignable to type 'number'.",
  },
  {
    what: "a priority that is not a whole number",
    code: 'workflow("mistake", { priority: 1.5 }, async () => {});',
    sentence: "A priority must be a whole number between -1,000,000 and 1,000,000, not 1.5.",
  },
  {
    what: "one tag in place of a list",
    code: 'workflow("mistake", { tags: "vip" }, async () => {});',
    compiler: "Type 'string' is not assignable to type 'readonly string[]'.",
  },
  {
    what: "a version that is a number",
    code: 'workflow("mistake", { version: 2 }, async () => {});',
    compiler: "Type 'number' is not assignable to type 'string'.",
  },
  {
    what: "one older name in place of a list",
    code: 'workflow("mistake", { aliases: { charge: "bill" } }, async () => {});',
    compiler: "Type 'string' is not assignable to type 'readonly string[]'.",
  },
  {
    what: "a promise in place of onFailure",
    code: 'workflow("mistake", { onFailure: mail.welcome(ada) }, async () => {});',
    compiler: "Type 'Promise<void>' is not assignable to type '(info: FailureInfo<any>) => unknown'.",
  },
  {
    what: "a transaction without a function",
    code: `workflow("mistake", async (ctx) => {
  await ctx.transaction("book");
});`,
    compiler: "Expected 2-3 arguments, but got 1.",
  },
  {
    what: "progress in words",
    code: `workflow("mistake", async (ctx) => {
  ctx.progress("half");
});`,
    compiler: "Argument of type 'string' is not assignable to parameter of type 'number'.",
  },
  {
    what: "a condition in a step's option that steps of functions do not have",
    code: `workflow("mistake", async (ctx) => {
  await ctx.step("a", () => 1, { skipIf: () => true });
});`,
    compiler:
      "Object literal may only specify known properties, and 'skipIf' does not exist in type 'StepOptions<number>'.",
  },
  {
    what: "a child that is not a workflow",
    code: `workflow("mistake", async (ctx) => {
  await ctx.run(mail.welcome, ada);
});`,
    compiler:
      "Argument of type '(_user: User) => Promise<void>' is not assignable to parameter of type 'ChildWorkflow<User, unknown>'.",
  },
  {
    what: "a child by a name that is not registered",
    code: `const parent = workflow("mistake", (ctx) => ctx.run("ordr", 1));
return await finished(pawl, parent);`,
    sentence: 'Workflow "ordr" is not registered; start a worker that has it, or call createWorkflow("ordr") first.',
  },
];
