/** Every kind of user code that Pawl calls, each as a workflow in which `call` stands for that code. */
import {
  type AnyWorkflow,
  graph,
  branch as graphBranch,
  type HeroRef,
  type JobDefinition,
  job,
  type Logger,
  PermanentError,
  type StepExecution,
  step,
  Workflow,
  workflow,
} from "pawl";
import { schema } from "../support/standard-schemas.js";

export type Call = (...args: any[]) => any;

export interface UserCode {
  readonly workflows: readonly AnyWorkflow[];
  readonly jobs?: readonly JobDefinition[];
  readonly hero?: HeroRef;
  readonly logger?: Logger;
  readonly onError?: Call;
  /** Nothing else is recorded while a step is undone or a transaction is open, so such a run cannot be canceled. */
  readonly cannotBeCanceled?: true;
}

const once = { retry: { attempts: 1 } };
const twice = { retry: { attempts: 2, initial: 1, jitter: false } } as const;
const fail = (): never => {
  throw new Error("of the step");
};
const failForGood = (): never => {
  throw new PermanentError("for good");
};

const child = workflow("child", (_ctx, item: number) => item);

/** An array that calls `call` when its second item is read. */
const arrayWithGetter = (call: Call) =>
  new Proxy([1, 2], { get: (target, name) => (name === "1" ? call() : Reflect.get(target, name)) });

/** A thenable that resolves with the result of the call. */
function thenable(call: Call): object {
  const then = (resolve: (value: unknown) => void) => resolve(call());
  const name = "then";
  return Object.defineProperty({}, name, { value: then });
}

/** Marks a promise that Pawl never sees as handled: its rejection concerns only Node and the code that made it. */
function markHandled<Made>(made: Made): Made {
  if (made instanceof Promise) made.catch(() => {});
  return made;
}

const inFunctions: Record<string, (call: Call) => UserCode> = {
  "the handler": (call) => ({ workflows: [workflow("hostile", once, () => call())] }),
  "the then of what a handler returns": (call) => ({
    workflows: [workflow("hostile", once, () => thenable(call) as never)],
  }),
  "the toJSON of what a handler returns": (call) => ({
    workflows: [workflow("hostile", once, () => ({ toJSON: call }))],
  }),
  "a getter of what a handler returns": (call) => ({
    workflows: [workflow("hostile", once, () => Object.defineProperty({}, "x", { get: call, enumerable: true }))],
  }),
  "the body of a step": (call) => ({ workflows: [workflow("hostile", once, (ctx) => ctx.step("s", () => call()))] }),
  "the body of a step with a time limit": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.step("s", () => call(), { timeout: 50 }))],
  }),
  "the body of a step that pauses after a crash": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.step("s", () => call(), { onCrash: "pause" }))],
  }),
  "the then of what a step returns": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.step("s", () => thenable(call) as never))],
  }),
  "the input that is recorded beside a step": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.step("s", () => 1, { input: { toJSON: call } }))],
  }),
  "the message of what is thrown": (call) => ({
    workflows: [
      workflow("hostile", once, (ctx) =>
        ctx.step("s", () => {
          // Node also reads the message when it builds the stack.
          throw Object.defineProperty(new Error(), "message", { get: () => markHandled(call()) });
        }),
      ),
    ],
  }),
  "the toJSON of what is thrown": (call) => ({
    workflows: [
      workflow("hostile", once, () => {
        throw { toJSON: call };
      }),
    ],
  }),
  "the body of a transaction": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.transaction("s", () => call()))],
    cannotBeCanceled: true,
  }),
  "a compensation": (call) => ({
    workflows: [
      workflow("hostile", once, async (ctx) => {
        await ctx.step("book", () => 1, { compensate: () => call() });
        return ctx.step("fails", fail);
      }),
    ],
    cannotBeCanceled: true,
  }),
  onFailure: (call) => ({ workflows: [workflow("hostile", { ...once, onFailure: () => call() }, fail)] }),
  "onFailure after a step was undone": (call) => ({
    workflows: [
      workflow("hostile", { ...once, onFailure: () => call() }, async (ctx) => {
        await ctx.step("book", () => 1, { compensate: () => {} });
        return ctx.step("fails", fail);
      }),
    ],
  }),
  "onError of a workflow": (call) => ({
    workflows: [workflow("hostile", { ...once, onError: () => call() }, (ctx) => ctx.step("fails", fail))],
  }),
  "onError of the program": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.step("fails", fail))],
    onError: () => call(),
  }),
  retryIf: (call) => ({
    workflows: [workflow("hostile", (ctx) => ctx.step("s", fail, { retry: { ...twice.retry, retryIf: call } }))],
  }),
  backoff: (call) => ({
    workflows: [workflow("hostile", (ctx) => ctx.step("s", fail, { retry: { attempts: 2, backoff: call } }))],
  }),
  "backoff of what undoes a step": (call) => ({
    workflows: [
      workflow("hostile", async (ctx) => {
        await ctx.step("book", () => 1, { compensate: fail, retry: { attempts: 2, backoff: call } });
        throw new PermanentError("no");
      }),
    ],
  }),
  "the choice of a branch": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.branch("b", () => call(), { a: () => 1 }))],
  }),
  "the case of a branch": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.branch("b", () => "a", { a: () => call() }))],
  }),
  "the items of a map": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.map(child, arrayWithGetter(call))), child],
  }),
  "an arm of a race": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.race({ a: (async () => call())() }))],
  }),
  "the message of progress": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.progress(1, 2, { toJSON: () => markHandled(call()) } as never))],
  }),
  "the reason of cancel": (call) => ({
    workflows: [workflow("hostile", once, (ctx) => ctx.cancel({ toString: call, toJSON: call } as never))],
  }),
  "a logger": (call) => ({
    workflows: [
      workflow("hostile", once, async (ctx) => {
        ctx.log.info("hello");
        await ctx.step("s", fail);
      }),
    ],
    logger: { debug: call, info: call, warn: call, error: call },
  }),
};

const inSchemas: Record<string, (call: Call) => UserCode> = {
  "the schema of an input": (call) => ({ workflows: [workflow("hostile", { ...once, input: schema(call) }, () => 1)] }),
  "the schema of an input, before onFailure": (call) => ({
    workflows: [workflow("hostile", { ...once, input: schema(call), onFailure: () => {} }, () => 1)],
  }),
  "what the schema of an input finds wrong": (call) => ({
    workflows: [
      workflow(
        "hostile",
        { ...once, input: schema(() => Object.defineProperty({}, "issues", { get: call })) },
        () => 1,
      ),
    ],
  }),
  "the schema of an output": (call) => ({
    workflows: [workflow("hostile", { ...once, output: schema(call) }, () => 1 as never)],
  }),
  "the schema of a child's input": (call) => {
    const strict = workflow("child", { input: schema<void>(call) }, () => 1);
    return { workflows: [workflow("hostile", once, (ctx) => ctx.run(strict)), strict] };
  },
  "the schema of a child that is known by name": (call) => ({
    workflows: [
      workflow("hostile", once, (ctx) => ctx.run("child", undefined)),
      workflow("child", { input: schema(call) }, () => 1),
    ],
  }),
};

/** A class whose one step fails if `fails` says so, with these options and members. */
function classWith(options: object, given: { fails?: boolean; members?: object; statics?: object } = {}): AnyWorkflow {
  class Hostile extends Workflow {
    static {
      this.options({ name: "hostile", retry: { initial: 1 } });
      if ("job" in options) this.step("s", options as never);
      else this.step("s", options as never, () => (given.fails === true ? fail() : undefined));
    }
  }
  Object.defineProperties(Hostile.prototype, Object.getOwnPropertyDescriptors(given.members ?? {}));
  Object.assign(Hostile, given.statics ?? {});
  return Hostile;
}

const inClasses: Record<string, (call: Call) => UserCode> = {
  "the step of a class": (call) => ({
    workflows: [
      class Hostile extends Workflow {
        static {
          this.options({ name: "hostile" });
          this.step("s", () => call());
        }
      },
    ],
  }),
  "the constructor of a class": (call) => ({
    workflows: [
      class Hostile extends Workflow {
        static {
          this.options({ name: "hostile" });
          this.step("s", () => {});
        }
        readonly made = markHandled(call());
      },
    ],
  }),
  skipIf: (call) => ({ workflows: [classWith({ skipIf: () => call() })] }),
  if: (call) => ({ workflows: [classWith({ if: () => call() })] }),
  cancelIf: (call) => ({
    workflows: [
      class Hostile extends Workflow {
        static {
          this.options({ name: "hostile" });
          this.cancelIf(() => call());
          this.step("s", () => {});
        }
      },
    ],
  }),
  loadHero: (call) => ({
    workflows: [classWith({}, { statics: { heroType: "User", loadHero: () => call() } })],
    hero: { type: "User", id: "7" },
  }),
  beforeStepExecution: (call) => ({ workflows: [classWith({}, { members: { beforeStepExecution: () => call() } })] }),
  afterStepExecution: (call) => ({ workflows: [classWith({}, { members: { afterStepExecution: () => call() } })] }),
  "afterStepExecution of a step that failed": (call) => ({
    workflows: [classWith({}, { fails: true, members: { afterStepExecution: () => call() } })],
  }),
  aroundStepExecution: (call) => ({ workflows: [classWith({}, { members: { aroundStepExecution: () => call() } })] }),
  "aroundStepExecution, once the step has run": (call) => ({
    workflows: [
      classWith(
        {},
        {
          members: {
            async aroundStepExecution(_about: StepExecution, next: () => Promise<void>) {
              await next();
              return call();
            },
          },
        },
      ),
    ],
  }),
  "onException that decides": (call) => ({ workflows: [classWith({ onException: () => call() }, { fails: true })] }),
  "onException that recognises": (call) => ({
    workflows: [classWith({ onException: { on: (error: unknown) => call(error), action: "skip" } }, { fails: true })],
  }),
  "the backoff of a class": (call) => ({
    workflows: [
      classWith({ onException: "reattempt", maxReattempts: 1, retry: { backoff: () => call() } }, { fails: true }),
    ],
  }),
  "the arguments of a job": (call) => ({
    workflows: [classWith({ job: "Work", args: () => call() })],
    jobs: [job("Work", () => {})],
  }),
};

/** A class with one resumable step. */
function resumable(body: (iter: any) => unknown): UserCode {
  class Hostile extends Workflow {
    static {
      this.options({ name: "hostile" });
      this.resumableStep("s", (_w, iter) => body(iter));
    }
  }
  return { workflows: [Hostile] };
}

const inIterators: Record<string, (call: Call) => UserCode> = {
  "the code for an item": (call) => resumable((iter) => iter.over([1, 2], () => call())),
  "an iterable": (call) => resumable((iter) => iter.over({ [Symbol.iterator]: () => markHandled(call()) }, () => {})),
  "the next of an async iterable": (call) =>
    resumable((iter) => iter.each({ [Symbol.asyncIterator]: () => ({ next: call }) }, () => {})),
  "the pairs of each": (call) => resumable((iter) => iter.each(call, () => {})),
  "the fetch of records": (call) => resumable((iter) => iter.records({ fetch: call, key: "id" }, () => {})),
  "the key of records": (call) =>
    resumable((iter) => iter.records({ fetch: (after: unknown) => (after === null ? [1] : []), key: call }, () => {})),
  "the fetch of batches": (call) => resumable((iter) => iter.batches({ fetch: call, key: "id" }, () => {})),
  "a cursor": (call) => resumable((iter) => iter.set({ toJSON: call })),
};

const inGraphs: Record<string, (call: Call) => UserCode> = {
  "the step of a graph": (call) => ({ workflows: [graph("hostile", [step("s", () => call(), once)])] }),
  "the choice of a graph's branch": (call) => ({
    workflows: [graph("hostile", [graphBranch("b", () => call(), { a: [step("s", () => 1)] })], once)],
  }),
  "the compensation of a graph's step": (call) => {
    const book = step("book", () => 1, { compensate: () => call(), ...once });
    return { workflows: [graph("hostile", [book, step("no", failForGood).after(book)])], cannotBeCanceled: true };
  },
  "the retryIf of a graph's step": (call) => ({
    workflows: [graph("hostile", [step("s", fail, { retry: { ...twice.retry, retryIf: call } })])],
  }),
  "the code of a job": (call) => ({
    workflows: [classWith({ job: "Work" })],
    jobs: [job("Work", () => call(), once)],
  }),
  "the backoff of a job": (call) => ({
    workflows: [classWith({ job: "Work" })],
    jobs: [job("Work", fail, { retry: { attempts: 2, backoff: call } })],
  }),
};

export const userCodeCases = { ...inFunctions, ...inSchemas, ...inClasses, ...inIterators, ...inGraphs };
