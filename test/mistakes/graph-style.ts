import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a dependency that is not in the graph",
    code: `const [validate, charge] = [step("validate", () => 1), step("charge", () => 2)];
graph("mistake", [charge.after(validate)]);`,
    sentence: 'Step "charge" of graph "mistake" depends on "validate", which is not in the graph; add it to the list.',
  },
  {
    what: "two steps of one name",
    code: 'graph("mistake", [step("charge", () => 1), step("charge", () => 2)]);',
    sentence: 'Graph "mistake" has two steps called "charge"; rename one of them.',
  },
  {
    what: "the output of a step that does not come before",
    code: `const validate = step("validate", () => 1);
const charge = step("charge", (ctx) => ctx.output(validate));
return await finished(pawl, graph("mistake", [validate, charge]));`,
    sentence:
      'Step "charge" of graph "mistake" reads the output of "validate", which does not precede it; add .after(validate).',
  },
  {
    what: "an output by name",
    code: 'step("charge", (ctx) => ctx.output("validate"));',
    compiler:
      "Argument of type 'string' is not assignable to parameter of type 'StepHandle<string, any, unknown, any>'.",
  },
  {
    what: "a misspelt member of an output",
    code: `const validate = step("validate", () => ({ total: 1 }));
step("charge", (ctx) => ctx.output(validate).totl);`,
    compiler: "Property 'totl' does not exist on type '{ total: number; }'. Did you mean 'total'?",
  },
  {
    what: "a promise in place of a step's function",
    code: 'step("welcome", mail.welcome(ada));',
    compiler:
      "Argument of type 'Promise<void>' is not assignable to parameter of type '(ctx: StepContext<unknown>) => unknown'.",
  },
  {
    what: "a misspelt option of a step",
    code: 'step("welcome", () => 1, { timout: "1h" });',
    compiler:
      "Object literal may only specify known properties, but 'timout' does not exist in type 'GraphStepOptions<number>'. Did you mean to write 'timeout'?",
  },
  {
    what: "a misspelt method of a step",
    code: `const [validate, charge] = [step("validate", () => 1), step("charge", () => 2)];
charge.afer(validate);`,
    compiler:
      "Property 'afer' does not exist on type 'StepHandle<\"charge\", unknown, number, never>'. Did you mean 'after'?",
  },
  {
    what: "a name in place of a step",
    code: 'step("charge", () => 2).after("validate");',
    compiler: "Argument of type 'string' is not assignable to parameter of type 'AnyNode'.",
  },
  {
    what: "a case that a branch does not have",
    code: `const [large, small] = [step("large", () => 1), step("small", () => 2)];
branch("size", () => "lrage", { large: [large], small: [small] });`,
    compiler:
      'Type \'"lrage"\' is not assignable to type \'"large" | "small" | Promise<"large" | "small">\'. Did you mean \'"large"\'?',
  },
  {
    what: "one step in place of a list",
    code: 'graph("mistake", step("a", () => 1));',
    compiler:
      "Type 'StepHandle<\"a\", unknown, number, never>' is missing the following properties from type 'readonly AnyNode[]': length, concat, join, slice, and 20 more.",
  },
  {
    what: "the nodes behind the options",
    code: 'graph("mistake", { concurrency: 2 }, [step("a", () => 1)]);',
    compiler:
      "Object literal may only specify known properties, and 'concurrency' does not exist in type 'readonly AnyNode[]'.",
  },
  {
    what: "a concurrency of zero",
    code: 'graph("mistake", [step("a", () => 1)], { concurrency: 0 });',
    sentence: 'The concurrency of graph "mistake" is a whole number above 0, not 0.',
  },
  {
    what: "a compensation that takes another output",
    code: 'step("charge", () => ({ paid: 1 }), { compensate: (_ctx, charged: { refunded: number }) => {} });',
    compiler:
      "Type '(_ctx: StepContext<any>, charged: { refunded: number; }) => void' is not assignable to type '(ctx: StepContext<any>, output: { paid: number; }) => unknown'.",
  },
  {
    what: "a graph without steps",
    code: 'graph("mistake", []);',
    sentence: 'Graph "mistake" has no steps; give it at least one.',
  },
];
