/** What the compiler knows of graphs. */
import { branch, graph, type Pawl, type StepContext, step, workflow } from "pawl";
import { describe, expectTypeOf, test } from "vitest";

interface Order {
  readonly total: number;
}
declare const pawl: Pawl;

/** The code is type-checked and never called. */
function typeCheckOnly(_code: () => unknown): void {}

const validate = step("validate", (ctx: StepContext<Order>) => ({ total: ctx.input.total }));
const fraud = step("fraud", async (ctx) => ({ score: ctx.output(validate).total / 2 }));
const label = step("label", () => "label");

describe("a graph", () => {
  test("takes the input type of its steps", () => {
    const one = graph("one", [validate, fraud.after(validate)]);
    typeCheckOnly(async () => {
      await pawl.start(one, { total: 1 });
      // @ts-expect-error: a total is a number
      await pawl.start(one, { total: "1" });
      // @ts-expect-error: the input is missing
      await pawl.start(one);
      await pawl.start(graph("none", [label]));
    });
  });

  test("has the output of its last step, or an object by name", () => {
    typeCheckOnly(async () => {
      const one = await pawl.start(graph("one", [validate, fraud.after(validate)]), { total: 1 });
      expectTypeOf(await one.result()).toEqualTypeOf<{ score: number }>();
      expectTypeOf((await one.get()).input).toMatchTypeOf<Order>();
      const two = await pawl.start(graph("two", [validate, fraud.after(validate), label.after(validate)]), {
        total: 1,
      });
      expectTypeOf(await two.result()).toEqualTypeOf<{ fraud: { score: number }; label: string }>();
    });
  });

  test("knows that a step in a case may be skipped", () => {
    const either = graph("either", [branch("way", () => "a" as const, { a: [label], b: [step("number", () => 1)] })]);
    typeCheckOnly(async () => {
      const run = await pawl.start(either);
      expectTypeOf(await run.result()).toEqualTypeOf<{ label: string | undefined; number: number | undefined }>();
    });
  });
});

describe("a step", () => {
  test("reads typed outputs, and may map over typed children", () => {
    const child = workflow("child", async (_ctx, n: number) => `#${n}`);
    step("fan", async (ctx) => {
      expectTypeOf(ctx.output(validate)).toEqualTypeOf<{ total: number }>();
      expectTypeOf(ctx.maybeOutput(label)).toEqualTypeOf<string | undefined>();
      typeCheckOnly(async () => {
        const made = await ctx.map(child, [1, 2]);
        expectTypeOf(made[0]).toEqualTypeOf<string | undefined>();
        // @ts-expect-error: items are numbers
        await ctx.map(child, ["1"]);
        // @ts-expect-error: there is no such field
        ctx.output(validate).missing;
      });
    });
  });

  test("passes its output type to compensate", () => {
    step("book", () => ({ id: 1 }), {
      compensate: (_ctx, booking) => expectTypeOf(booking).toEqualTypeOf<{ id: number }>(),
    });
  });

  test("comes after steps, not after names", () => {
    // @ts-expect-error: a name is not a step
    typeCheckOnly(() => label.after("validate"));
    // @ts-expect-error: a branch chooses among its cases
    typeCheckOnly(() => branch("way", () => "c", { a: [label] }));
  });
});
