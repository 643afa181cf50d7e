import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a node without a job",
    code: 'await pawl.build("mistake", (g) => g.node("a", {}));',
    compiler:
      "Property 'job' is missing in type '{}' but required in type '{ readonly job: string | JobDefinition<any, any>; readonly dependsOn?: DependsOn | undefined; }'.",
  },
  {
    what: "a node without a job, from untyped code",
    code: `const options: any = {};
await pawl.build("mistake", (g) => g.node("a", options));`,
    sentence: 'Node "a" of graph "mistake" needs a `job`: one made by job(…), or the name of one.',
  },
  {
    what: "a misspelt dependency",
    code: `await pawl.build("mistake", (g) => {
  g.node("aggregate", { job: "Sum" });
  g.node("notify", { job: "Mail", dependsOn: "agregate" });
});`,
    sentence:
      'Node "notify" of graph "mistake" depends on "agregate", which is not in the graph; did you mean "aggregate"? Its other nodes are "aggregate".',
  },
  {
    what: "arguments that the job does not take",
    code: 'await pawl.build("mistake", (g) => g.node("a", { job: resize, args: { fiel: "a.png" } }));',
    compiler:
      "Object literal may only specify known properties, and 'fiel' does not exist in type '{ file: string; }'.",
  },
  {
    what: "a job without its arguments",
    code: 'await pawl.build("mistake", (g) => g.node("a", { job: resize }));',
    compiler:
      "Property 'args' is missing in type '{ job: JobDefinition<{ file: string; }, string>; }' but required in type '{ readonly args: { file: string; }; }'.",
  },
  {
    what: "a fan-out whose nodes have no names",
    code: 'await pawl.build("mistake", (g) => g.fanOut([1, 2], { job: "Sum" }));',
    compiler:
      "Property 'name' is missing in type '{ job: \"Sum\"; }' but required in type '{ readonly name: (item: number, index: number) => string; readonly job: \"Sum\"; readonly dependsOn?: DependsOn | undefined; }'.",
  },
  {
    what: "a fan-out with one value for all arguments",
    code: 'await pawl.build("mistake", (g) => g.fanOut(["a"], { name: (f) => f, job: resize, args: { file: "a" } }));',
    compiler:
      "Object literal may only specify known properties, and 'file' does not exist in type '(item: string, index: number) => { file: string; }'.",
  },
  {
    what: "two nodes of one name",
    code: `await pawl.build("mistake", (g) => {
  g.node("a", { job: "Sum" });
  g.node("a", { job: "Sum" });
});`,
    sentence: 'Graph "mistake" has two nodes called "a"; rename one of them.',
  },
  {
    what: "a graph without nodes",
    code: 'await pawl.build("mistake", () => {});',
    sentence: 'Graph "mistake" has no nodes; add them with g.node(name, { job }) or g.fanOut(items, …).',
  },
  {
    what: "options before the function",
    code: 'await pawl.build("mistake", { hero: { type: "User", id: "1" } }, () => {});',
    compiler:
      "Object literal may only specify known properties, and 'hero' does not exist in type '(g: GraphBuilder) => unknown'.",
  },
  {
    what: "the name of a class",
    code: `await pawl.start(Goodbye, { hero: Goodbye.heroOf(ada) });
await pawl.build("Goodbye", (g) => g.node("a", { job: "Sum" }));`,
    sentence: 'build("Goodbye", …) has the name of a registered workflow; rename the graph.',
  },
  {
    what: "a promise in place of a job's function",
    code: 'job("Welcome", mail.welcome(ada));',
    compiler:
      "Argument of type 'Promise<void>' is not assignable to parameter of type '(args: void, tools: JobTools) => void | Promise<void>'.",
  },
  {
    what: "a misspelt option of a job",
    code: 'job("Welcome", mail.welcome, { retires: { attempts: 2 } });',
    compiler: "Object literal may only specify known properties, and 'retires' does not exist in type 'JobOptions'.",
  },
  {
    what: "a misspelt method of the builder",
    code: 'await pawl.build("mistake", (g) => g.nod("a", { job: "Sum" }));',
    compiler: "Property 'nod' does not exist on type 'GraphBuilder'. Did you mean 'node'?",
  },
  {
    what: "a second graph for the same hero",
    code: `const hero = Goodbye.heroOf(ada);
await pawl.build("mistake", (g) => g.node("a", { job: "Sum" }), { hero });
await pawl.build("mistake", (g) => g.node("a", { job: "Sum" }), { hero });`,
    sentence:
      'User 42 already has an active run of workflow "mistake": <id>. Wait for it, cancel it, or start with allowMultiple or onConflict.',
  },
  {
    what: "a node that is not there to be tried again",
    code: `const run = await pawl.build("mistake", (g) => g.node("aggregate", { job: "Sum" }));
await run.reattempt("agregate");`,
    sentence: 'Run <id> has no node "agregate"; it has "aggregate".',
  },
  {
    what: "a graph that is not JSON",
    code: `const run = await pawl.build("mistake", (g) => g.node("a", { job: "Sum" }));
await run.pause();
await run.importDag("{ nodes: }");`,
    sentence: "importDag takes the JSON of a graph, as exportDag() gives it.",
  },
];
