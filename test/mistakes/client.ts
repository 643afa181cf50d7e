import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "an environment variable that is not set",
    code: "await connect(process.env.PAWL_MISTAKE);",
    sentence: "connect was given undefined: is the environment variable set?",
  },
  {
    what: "a misspelt scheme",
    code: 'await connect("postgre://localhost/app");',
    sentence:
      '"postgre:…" is not a database URL that Pawl knows. Examples: sqlite:./pawl.db, postgres://localhost/app, mysql://localhost/app, libsql://name.turso.io, memory:',
  },
  {
    what: "a misspelt option of connect",
    code: 'await connect("memory:", { retension: "30 days" });',
    compiler:
      "Object literal may only specify known properties, but 'retension' does not exist in type 'ConnectOptions'. Did you mean to write 'retention'?",
  },
  {
    what: "a retention of seconds",
    code: 'await connect("memory:", { retention: "5s" });',
    sentence: "The retention is at least a minute, not 5000 ms; without one nothing is deleted.",
  },
  {
    what: "a debounce without a pause",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { debounce: { key: "A-1" } });',
    compiler: "Property 'quiet' is missing in type '{ key: string; }' but required in type",
  },
  {
    what: "a debounce whose key is empty",
    code: 'await pawl.start(order, { sku: "", cents: 1 }, { debounce: { key: "", quiet: "5s" } });',
    sentence:
      'The key of the debounce of start("order") must be a text that is not empty, or a number, not "": starts with the same key are merged.',
  },
  {
    what: "a debounce whose longest time is shorter than its pause",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { debounce: { key: "A-1", quiet: "5s", max: "1s" } });',
    sentence: 'The max of the debounce of start("order") is 1s, less than its quiet, 5s.',
  },
  {
    what: "one key for many debounced starts",
    code: 'await pawl.startMany(order, [{ sku: "A-1", cents: 1 }, { sku: "A-2", cents: 1 }], { debounce: { key: "A", quiet: "5s" } });',
    sentence:
      'The key of the debounce of startMany("order") must be a function of { input, hero, tags }; with one key, all of these starts would be merged.',
  },
  {
    what: "a list of inputs for a workflow that takes one",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { debounce: { key: "A-1", quiet: "5s", keep: "all" } });',
    compiler: 'Type \'"all"\' is not assignable to type \'"first" | "last" | undefined\'',
  },
  {
    what: "a client that is not awaited",
    code: 'connect("memory:").start(order, { sku: "A-1", cents: 1 });',
    compiler: "Property 'start' does not exist on type 'Promise<Pawl>'.",
  },
  {
    what: "a workflow by name",
    code: 'await pawl.start("order", { sku: "A-1", cents: 1 });',
    compiler: "Argument of type 'string' is not assignable to parameter of type 'AnyWorkflow'.",
  },
  {
    what: "a workflow by name, from untyped code",
    code: `const name: any = "order";
await pawl.start(name, { sku: "A-1", cents: 1 });`,
    sentence:
      'This is not a workflow but the text "order". A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow; to start one by name use pawl.workflow(name).trigger(input).',
  },
  {
    what: "a start without the input",
    code: "await pawl.start(order);",
    compiler: "Expected 2-3 arguments, but got 1.",
  },
  {
    what: "a misspelt field of the input",
    code: 'await pawl.start(order, { sku: "A-1", cent: 1 });',
    compiler:
      "Object literal may only specify known properties, but 'cent' does not exist in type 'Order'. Did you mean to write 'cents'?",
  },
  {
    what: "a misspelt option of start",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { idempotentKey: "k" });',
    compiler:
      "Object literal may only specify known properties, but 'idempotentKey' does not exist in type 'StartOptions'. Did you mean to write 'idempotencyKey'?",
  },
  {
    what: "a delay that is a date",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { delay: new Date() });',
    compiler: "Type 'Date' is not assignable to type 'Duration | undefined'.",
  },
  {
    what: "a start at a time in words",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { startAt: "tomorrow" });',
    compiler: "Type 'string' is not assignable to type 'number | Date | undefined'.",
  },
  {
    what: "a start at a time in words, from untyped code",
    code: `const startAt: any = "tomorrow";
await pawl.start(order, { sku: "A-1", cents: 1 }, { startAt });`,
    sentence: 'startAt is not a valid date but "tomorrow"; pass a Date, or a number of milliseconds since 1970.',
  },
  {
    what: "a delay and a date",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { delay: "1h", startAt: new Date() });',
    sentence: "A start takes either `delay` or `startAt`, not both.",
  },
  {
    what: "an input that cannot be stored",
    code: `const any = workflow("mistake", async (_ctx, _input: object) => {});
await pawl.start(any, { callback: () => {} });`,
    sentence:
      'Cannot store the input of workflow "mistake": $.callback is a function (callback); pass plain data instead.',
  },
  {
    what: "a key for another input",
    code: `await pawl.start(order, { sku: "A-1", cents: 1 }, { idempotencyKey: "cart" });
await pawl.start(order, { sku: "B-2", cents: 1 }, { idempotencyKey: "cart" });`,
    sentence:
      'Workflow "order" was already started with the idempotency key "cart" and another input, as run <id>; use another key for another start.',
  },
  {
    what: "an input in place of a list of inputs",
    code: 'await pawl.startMany(order, { sku: "A-1", cents: 1 });',
    compiler: "Object literal may only specify known properties, and 'sku' does not exist in type 'readonly Order[]'.",
  },
  {
    what: "a misspelt filter",
    code: 'await pawl.runs({ state: "paused" });',
    compiler: "Object literal may only specify known properties, and 'state' does not exist in type 'RunsFilter'.",
  },
  {
    what: "a status that does not exist",
    code: 'await pawl.runs({ status: "done" });',
    compiler: "Type '\"done\"' is not assignable to type 'RunStatus | undefined'.",
  },
  {
    what: "a status that does not exist, from untyped code",
    code: `const status: any = "done";
await pawl.runs({ status });`,
    sentence: 'There is no status "done"; there are pending, running, waiting, paused, completed, failed, canceled.',
  },
  {
    what: "a hero by its id alone",
    code: 'await pawl.runs({ hero: "42" });',
    compiler: "Type 'string' is not assignable to type 'HeroRef<string>'.",
  },
  {
    what: "a page of nothing",
    code: "await pawl.runs({ limit: 0 });",
    sentence: "runs({ limit }) must be between 1 and 1000, not 0.",
  },
  {
    what: "a cursor of another kind",
    code: 'await pawl.runs({ cursor: "2" });',
    sentence: "runs({ cursor }) must be the `next` of another page.",
  },
  {
    what: "a run by something that is not an id",
    code: 'await pawl.run("order-42").get();',
    sentence:
      "Run order-42 does not exist: this is not a run id as start() and runs() return it. To find a run by its idempotency key, call find(workflow, { idempotencyKey }).",
  },
  {
    what: "a run that does not exist",
    code: 'await pawl.run("0190b8a0-0000-7000-8000-000000000000").get();',
    sentence: "Run 0190b8a0-0000-7000-8000-000000000000 does not exist; it may have been pruned.",
  },
  {
    what: "a signal without its payload",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.signal(approved);`,
    compiler: "Expected 2-3 arguments, but got 1.",
  },
  {
    what: "a signal with another payload",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.signal(approved, { from: "finance" });`,
    compiler: "Object literal may only specify known properties, and 'from' does not exist in type '{ by: string; }'.",
  },
  {
    what: "a misspelt option of signal",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.signal("approved", {}, { kee: "webhook-9" });`,
    compiler: "Object literal may only specify known properties, and 'kee' does not exist in type 'SignalOptions'.",
  },
  {
    what: "a time limit in words",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.result({ timeout: "soon" });`,
    sentence:
      'The timeout of result(), "soon", is not a duration; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a misspelt method of a run",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.results();`,
    compiler:
      "Property 'results' does not exist on type 'RunHandle<Order, { shelf: string; }>'. Did you mean 'result'?",
  },
  {
    what: "a run that is not paused",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.resume();`,
    sentence: "The run is pending, not paused; there is nothing to resume.",
  },
  {
    what: "a step to go on at in a run of a function",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.pause();
await run.resumeAt("reserve");`,
    sentence: "The run has not started, so there is no step to resume at.",
  },
  {
    what: "a retry of a run that has not failed",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.retry();`,
    sentence: "Run <id> is pending; only a run that has failed can be retried.",
  },
  {
    what: "a misspelt filter of prune",
    code: 'await pawl.prune({ olderThan: "30 days", worklfow: "order" });',
    compiler:
      "Object literal may only specify known properties, but 'worklfow' does not exist in type 'PruneOptions'. Did you mean to write 'workflow'?",
  },
  {
    what: "a prune of everything",
    code: "await pawl.prune({});",
    compiler: "Property 'olderThan' is missing in type '{}' but required in type 'PruneOptions'.",
  },
  {
    what: "a name that is not registered",
    code: 'await pawl.workflow("ordr").trigger({});',
    sentence: 'Workflow "ordr" is not registered; start a worker that has it, or call createWorkflow("ordr") first.',
  },
  {
    what: "a misspelt option of createWorkflow",
    code: 'await pawl.createWorkflow("order", { queu: "mail" });',
    compiler:
      "Object literal may only specify known properties, but 'queu' does not exist in type '{ readonly queue?: string | undefined; }'. Did you mean to write 'queue'?",
  },
  {
    what: "a pool in place of a transaction",
    code: 'await pawl.start(order, { sku: "A-1", cents: 1 }, { tx: {} });',
    sentence:
      "`tx` takes the one connection on which you have begun your transaction: a `pg` client, a `mysql2` connection, a `better-sqlite3` database, a transaction of `@libsql/client`, or { query(sql, params) }.",
  },
  {
    what: "a negative event",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
await run.stateAt(-1);`,
    sentence: "stateAt(seq) takes the number of an event, not -1.",
  },
  {
    what: "a client that is closed",
    code: `await pawl.close();
await pawl.start(order, { sku: "A-1", cents: 1 });`,
    sentence: "The memory store is closed; connect() opens another.",
  },
  {
    what: "a field of the output that it does not have",
    code: `const run = await pawl.start(order, { sku: "A-1", cents: 1 });
(await run.result()).shlef;`,
    compiler: "Property 'shlef' does not exist on type '{ shelf: string; }'. Did you mean 'shelf'?",
  },
];
