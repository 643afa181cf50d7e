import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a misspelt list of workflows",
    code: "pawl.worker({ workflow: [order] });",
    compiler:
      "Object literal may only specify known properties, but 'workflow' does not exist in type 'WorkerOptions'. Did you mean to write 'workflows'?",
  },
  {
    what: "one workflow in place of a list",
    code: "pawl.worker({ workflows: order });",
    compiler:
      "Type 'WorkflowDefinition<Order, { shelf: string; }>' is missing the following properties from type 'readonly AnyWorkflow[]': length, concat, join, slice, and 20 more.",
  },
  {
    what: "a workflow among the jobs",
    code: "pawl.worker({ workflows: [], jobs: [order] });",
    compiler:
      "Property 'job' is missing in type 'WorkflowDefinition<Order, { shelf: string; }>' but required in type 'JobDefinition<any, any>'.",
  },
  {
    what: "a step among the workflows",
    code: 'pawl.worker({ workflows: [step("a", () => 1)] });',
    compiler: "Type 'StepHandle<\"a\", unknown, number, never>' is not assignable to type 'AnyWorkflow'.",
  },
  {
    what: "a step among the workflows, from untyped code",
    code: `const exported: any[] = [order, step("reserve", () => 1)];
pawl.worker({ workflows: exported });`,
    sentence:
      'workflows[1] is not a workflow but the step "reserve". A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow. To take the workflows and jobs from all exports of a module, use discoverWorkflows(module).',
  },
  {
    what: "a whole module in place of a list",
    code: `const shop = await import("./shop.js");
pawl.worker({ workflows: Object.values(shop) as any });`,
    sentence:
      'workflows[2] is not a workflow but an object called "Ada". A workflow is made by workflow(…) or graph(…), or is a class that extends Workflow. To take the workflows and jobs from all exports of a module, use discoverWorkflows(module).',
  },
  {
    what: "a concurrency of zero",
    code: "pawl.worker({ workflows: [order], concurrency: 0 });",
    sentence: "A worker's concurrency is a whole number above 0, not 0.",
  },
  {
    what: "a concurrency in words",
    code: 'pawl.worker({ workflows: [order], concurrency: "10" });',
    compiler: "Type 'string' is not assignable to type 'number'.",
  },
  {
    what: "a port that does not exist",
    code: "pawl.worker({ workflows: [order], port: 99_999 });",
    sentence: "A worker's port is a whole number from 1 to 65535, not 99999.",
  },
  {
    what: "a lease in a unit that does not exist",
    code: 'pawl.worker({ workflows: [order], lease: "10 secs." });',
    sentence:
      'The lease "10 secs." is not a duration; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "one queue in place of a list",
    code: 'pawl.worker({ workflows: [order], queues: "mail" });',
    compiler: "Type 'string' is not assignable to type 'readonly string[]'.",
  },
  {
    what: "a misspelt option of a worker",
    code: "pawl.worker({ workflows: [order], concurency: 5 });",
    compiler:
      "Object literal may only specify known properties, but 'concurency' does not exist in type 'WorkerOptions'. Did you mean to write 'concurrency'?",
  },
  {
    what: "two workflows of one name",
    code: 'pawl.worker({ workflows: [order, workflow("order", async () => {})] });',
    sentence: 'Two different workflows are called "order"; give one another name, or both a version.',
  },
  {
    what: "a worker that is started twice",
    code: `const worker = pawl.worker({ workflows: [order] });
await worker.start();
await worker.start();`,
    sentence: 'Worker "<name>" is running; create a new one to start again.',
  },
  {
    what: "a worker of a client that is not awaited",
    code: 'connect("memory:").worker({ workflows: [order] });',
    compiler: "Property 'worker' does not exist on type 'Promise<Pawl>'.",
  },
  {
    what: "a promise of the definitions",
    code: 'pawl.worker({ workflows: import("./shop.js") });',
    compiler:
      "Type 'Promise<typeof import(\"<project>/shop\")>' is missing the following properties from type 'readonly AnyWorkflow[]': length, concat, join, slice, and 20 more.",
  },
];
