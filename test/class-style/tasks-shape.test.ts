/** Steps and tasks of a class: their predecessors, and the declarations that are refused before anything runs. */
import {
  discoverWorkflows,
  GraphError,
  InvalidInputError,
  job,
  type StepDeclarationOptions,
  StepNotDefinedError,
  Workflow,
  type WorkflowClass,
} from "pawl";
import { describe, expect, test } from "vitest";

type WorkflowType = typeof Workflow;

/** A class with the declarations of the test, in their order. */
function classWith(declare: (it: WorkflowType) => void, Parent: WorkflowType = Workflow): WorkflowClass & WorkflowType {
  class Shaped extends Parent {
    static {
      declare(this as unknown as WorkflowType);
    }
  }
  return Shaped as unknown as WorkflowClass & WorkflowType;
}

/** Lists each node with its predecessors, such as "charge < check, stock". */
function shapeOf(type: WorkflowClass): string[] {
  const [definition] = discoverWorkflows({ type });
  return (definition?.declared?.nodes ?? []).map(({ name, after }) =>
    after.length === 0 ? name : `${name} < ${[...after].sort().join(", ")}`,
  );
}

const kindOf = (type: WorkflowClass) => discoverWorkflows({ type })[0]?.declared?.kind;

const noop = () => {};

function step(it: WorkflowType, name: string, options: StepDeclarationOptions<any> = {}): void {
  it.step(name, options, noop);
}

function task(it: WorkflowType, name: string, options: StepDeclarationOptions<any> = {}): void {
  it.task(name, options, noop);
}

describe("a chain", () => {
  test("has each step after the previous one, and stays a chain", () => {
    const type = classWith((it) => {
      for (const name of ["validate", "process", "complete"]) step(it, name);
    });
    expect(shapeOf(type)).toEqual(["validate", "process < validate", "complete < process"]);
    expect(kindOf(type)).toBe("chain");
  });

  test("with explicit dependencies that match its order stays a chain", () => {
    const type = classWith((it) => {
      step(it, "a", { dependsOn: null });
      step(it, "b", { dependsOn: "a" });
      step(it, "c", { alsoDependsOn: "b" });
      step(it, "d", { dependsOn: ["c", "c"] });
    });
    expect(shapeOf(type)).toEqual(["a", "b < a", "c < b", "d < c"]);
    expect(kindOf(type)).toBe("chain");
  });

  test("includes steps that are inserted later: predecessors are resolved when all steps are declared", () => {
    const type = classWith((it) => {
      step(it, "validate");
      step(it, "process");
      step(it, "audit", { afterStep: "validate" });
      step(it, "open", { beforeStep: "validate" });
      step(it, "sign", { beforeStep: "process" });
      task(it, "report", { dependsOn: "process" });
    });
    expect(shapeOf(type)).toEqual([
      "open",
      "validate < open",
      "audit < validate",
      "sign < audit",
      "process < sign",
      "report < process",
    ]);
  });

  test("continues after a step with its own dependsOn", () => {
    const type = classWith((it) => {
      step(it, "a");
      step(it, "b");
      task(it, "t", { dependsOn: "a" });
      step(it, "c", { dependsOn: "t" });
      step(it, "d");
    });
    expect(shapeOf(type)).toEqual(["a", "b < a", "t < a", "c < t", "d < c"]);
  });

  test("has an inserted step with its own dependsOn as the predecessor of the next step", () => {
    const type = classWith((it) => {
      step(it, "a");
      step(it, "c");
      task(it, "t");
      step(it, "b", { afterStep: "a", dependsOn: "t" });
    });
    expect(shapeOf(type)).toEqual(["a", "t", "b < t", "c < b"]);
  });
});

describe("a task", () => {
  test("comes after the nodes it names, or after none", () => {
    const type = classWith((it) => {
      task(it, "free");
      task(it, "alone", { dependsOn: null });
      task(it, "none", { dependsOn: [] });
      task(it, "one", { dependsOn: "free" });
      task(it, "two", { dependsOn: ["one", "alone", "one"] });
      task(it, "three", { dependsOn: "two", alsoDependsOn: ["none"] });
    });
    expect(shapeOf(type)).toEqual(["free", "alone", "none", "one < free", "two < alone, one", "three < none, two"]);
    expect(kindOf(type)).toBe("graph");
  });

  test("has no place in the chain: the next step comes after the previous step", () => {
    const type = classWith((it) => {
      step(it, "a");
      task(it, "t", { dependsOn: "a" });
      step(it, "b");
    });
    expect(shapeOf(type)).toEqual(["a", "b < a", "t < a"]);
  });

  test("may name a step that is declared below it", () => {
    const type = classWith((it) => {
      task(it, "t", { dependsOn: "b" });
      step(it, "a");
      step(it, "b");
    });
    expect(shapeOf(type)).toEqual(["a", "b < a", "t < b"]);
  });

  test("is not counted when steps without a name are numbered", () => {
    const type = classWith((it) => {
      it.step(() => {});
      task(it, "t", { dependsOn: "step_1" });
      it.step(() => {});
      it.task("u", { dependsOn: "step_2" }, () => {});
      it.step(() => {});
    });
    expect(shapeOf(type)).toEqual(["step_1", "step_2 < step_1", "t < step_1", "step_3 < step_2", "u < step_2"]);
  });
});

describe("alsoDependsOn", () => {
  test("adds to the previous step, even when that step is inserted later", () => {
    const type = classWith((it) => {
      step(it, "charge");
      step(it, "ship", { alsoDependsOn: "fraud" });
      step(it, "receipt", { afterStep: "charge" });
      task(it, "fraud");
    });
    expect(shapeOf(type)).toEqual(["charge", "fraud", "receipt < charge", "ship < fraud, receipt"]);
  });

  test("adds to dependsOn, and duplicate names count once", () => {
    const type = classWith((it) => {
      step(it, "a");
      step(it, "b");
      step(it, "c", { dependsOn: "a", alsoDependsOn: ["a", "b"] });
    });
    expect(shapeOf(type)).toEqual(["a", "b < a", "c < a, b"]);
  });
});

test("a resumable step has its place in the chain, or its own dependencies, like any other step", () => {
  const type = classWith((it) => {
    step(it, "a");
    it.resumableStep("loop", { dependsOn: "t", maxIterations: 5 }, noop);
    it.resumableStep("again", { alsoDependsOn: "t" }, noop);
    task(it, "t");
  });
  expect(shapeOf(type)).toEqual(["a", "t", "loop < t", "again < loop, t"]);
});

describe("inheritance", () => {
  const parent = () =>
    classWith((it) => {
      step(it, "validate");
      step(it, "charge");
    });

  test("a subclass adds its tasks and steps to those of its parent, and the parent keeps its own", () => {
    const Parent = parent();
    const child = classWith((it) => {
      task(it, "fraud", { dependsOn: "validate" });
      step(it, "ship", { alsoDependsOn: "fraud" });
      step(it, "audit", { afterStep: "validate" });
    }, Parent);
    expect(shapeOf(child)).toEqual([
      "validate",
      "audit < validate",
      "fraud < validate",
      "charge < audit",
      "ship < charge, fraud",
    ]);
    expect(shapeOf(Parent)).toEqual(["validate", "charge < validate"]);
    expect([kindOf(child), kindOf(Parent)]).toEqual(["graph", "chain"]);
  });

  test("a subclass's steps may depend on its parent's tasks", () => {
    const Parent = classWith((it) => {
      step(it, "a");
      task(it, "t", { dependsOn: "a" });
    });
    const child = classWith((it) => step(it, "b", { dependsOn: "t" }), Parent);
    expect(shapeOf(child)).toEqual(["a", "t < a", "b < t"]);
  });

  test("a parent that depends on a step which only its subclasses declare is usable through the subclasses only", () => {
    const Parent = classWith((it) => step(it, "a", { dependsOn: "t" }));
    expect(() => shapeOf(Parent)).toThrow(GraphError);
    expect(shapeOf(classWith((it) => task(it, "t"), Parent))).toEqual(["t", "a < t"]);
  });
});

describe("when the class is first used", () => {
  const refused: readonly [what: string, declare: (it: WorkflowType) => void, problem: RegExp][] = [
    [
      "a task with an unknown dependency",
      (it) => task(it, "fraud", { dependsOn: "validat" }),
      /"fraud" of workflow Shaped depends on "validat", which does not exist/,
    ],
    [
      "a step with an unknown dependency",
      (it) => step(it, "ship", { alsoDependsOn: ["fraud"] }),
      /"ship" of workflow Shaped depends on "fraud", which does not exist/,
    ],
    [
      "a cycle of tasks",
      (it) => {
        step(it, "validate");
        task(it, "a", { dependsOn: ["validate", "c"] });
        task(it, "b", { dependsOn: "a" });
        task(it, "c", { dependsOn: "b" });
      },
      /cycle: (a → b → c → a|b → c → a → b|c → a → b → c)\./,
    ],
    [
      "a cycle through the chain",
      (it) => {
        step(it, "a", { alsoDependsOn: "b" });
        step(it, "b");
      },
      /cycle: (a → b → a|b → a → b)\./,
    ],
    ["a task that depends on itself", (it) => task(it, "a", { dependsOn: "a" }), /cycle: a → a\./],
  ];

  test.each(refused)("%s is refused with a GraphError that names the nodes", (_what, declare, problem) => {
    const type = classWith(declare);
    // The class is refused each time, so a failed first use leaves no partial state.
    for (let time = 0; time < 2; time += 1) {
      expect(() => shapeOf(type)).toThrow(GraphError);
      expect(() => shapeOf(type)).toThrow(problem);
    }
  });

  test("a name can be declared once, as a step or as a task", () => {
    const twice: ((it: WorkflowType) => void)[] = [
      (it) => [task(it, "a"), task(it, "a")],
      (it) => [step(it, "a"), task(it, "a")],
      (it) => [task(it, "a"), step(it, "a")],
      (it) => [it.step(() => {}), task(it, "step_1")],
    ];
    for (const declare of twice) {
      expect(() => shapeOf(classWith(declare))).toThrow(InvalidInputError);
      expect(() => shapeOf(classWith(declare))).toThrow(/two steps called "(a|step_1)"/);
    }
    const inherited = classWith(
      (it) => task(it, "a"),
      classWith((it) => step(it, "a")),
    );
    expect(() => shapeOf(inherited)).toThrow(/two steps called "a"/);
  });

  test("beforeStep and afterStep cannot name a task", () => {
    const type = classWith((it) => {
      task(it, "t");
      step(it, "a", { afterStep: "t" });
    });
    expect(() => shapeOf(type)).toThrow(StepNotDefinedError);
  });

  test("a missing method is refused, and so is an inherited method of Workflow", () => {
    const untyped = (name: string) => classWith((it) => (it as any).task(name));
    expect(() => shapeOf(untyped("check"))).toThrow(StepNotDefinedError);
    expect(() => shapeOf(untyped("sleep"))).toThrow(StepNotDefinedError);
  });

  test("a queue or priority of a single step is refused in a class with tasks", () => {
    const withOne = (options: StepDeclarationOptions<any>) =>
      classWith((it) => {
        step(it, "a", options);
        task(it, "t");
      });
    for (const options of [{ queue: "mail" }, { priority: 5 }]) {
      expect(() => shapeOf(withOne(options))).toThrow(InvalidInputError);
      expect(() => shapeOf(withOne(options))).toThrow(/"a".*queue or priority/);
    }
  });
});

describe("at declaration", () => {
  /** Casts away the types, because JavaScript code can write any of this. */
  const declareUntyped = (write: (it: any) => void) => () => classWith((it) => write(it));
  const noop = () => {};

  test.each<[what: string, write: (it: any) => void, problem: RegExp]>([
    [
      "a task without a name",
      (it) => it.task({ dependsOn: null }, () => {}),
      /a task of workflow Shaped as task\(name, /,
    ],
    ["a task with an anonymous function only", (it) => it.task(() => {}), /a task of workflow Shaped as task\(name, /],
    ["a task without arguments", (it) => it.task(), /task\(name, options\?, function\)/],
    ["a beforeStep option", (it) => it.task("t", { beforeStep: "a" }, noop), /beforeStep or afterStep/],
    ["an afterStep option", (it) => it.task("t", { afterStep: "a" }, noop), /beforeStep or afterStep/],
    ["dependencies that are not names", (it) => it.task("t", { dependsOn: 5 }, noop), /dependsOn of task "t"/],
    [
      "a list that contains a value other than a name",
      (it) => it.task("t", { dependsOn: ["a", null] }, noop),
      /dependsOn/,
    ],
    ["an empty name", (it) => it.task("t", { dependsOn: "" }, noop), /empty|name/],
    ["null for alsoDependsOn", (it) => it.step("s", { alsoDependsOn: null }, noop), /alsoDependsOn/],
    ["a slash in its name", (it) => it.task("a/b", noop), /contains "\/"/],
    [
      "an option that does not exist",
      (it) => it.task("t", { dependson: "a" }, noop),
      /no option "dependson"; did you mean "dependsOn"/,
    ],
    ["an option of resumable steps", (it) => it.task("t", { maxRuntime: "1h" }, noop), /"maxRuntime"/],
    ["a job and a function", (it) => it.task("t", { job: "J" }, noop), /a job and a function/],
    ["a job that is not a job", (it) => it.task("t", { job: 5 }), /job of task "t"/],
    ["a job that is a function", (it) => it.step("s", { job: noop }), /job of step "s"/],
    ["a resumable step with a job", (it) => it.resumableStep("r", { job: "J" }), /resumable|job/],
    ["args without a job", (it) => it.task("t", { args: { id: 1 } }, noop), /args.*job/],
    ["args for a method", (it) => it.step("s", { args: 1 }), /args.*job/],
  ])("%s is refused", (_what, write, problem) => {
    expect(declareUntyped(write)).toThrow(InvalidInputError);
    expect(declareUntyped(write)).toThrow(problem);
  });

  test("a new task of a class that is already in use is refused", () => {
    const type = classWith((it) => task(it, "a"));
    shapeOf(type);
    expect(() => type.task("b", noop)).toThrow(/already in use; call task/);
  });

  test("every valid way to declare a task", () => {
    class Ways extends Workflow {
      static {
        this.task("function", () => {});
        this.task("options", { dependsOn: "function" }, () => {});
        this.task("method");
        this.task("method_with_options", { dependsOn: ["method"] });
        this.task("job", { job: "Send", args: { to: "ada" } });
        this.task("job_itself", { job: job("Other", () => {}), dependsOn: "job" });
        this.step("job_step", { job: "Send", args: () => 5 });
      }
      method() {}
      method_with_options() {}
    }
    expect(shapeOf(Ways)).toEqual([
      "job_step",
      "function",
      "method",
      "job",
      "options < function",
      "method_with_options < method",
      "job_itself < job",
    ]);
  });
});

/** Checked by `npm run check`, never called. */
const typeCheckOnly = (_body: () => unknown) => {};

test("the compiler checks the declaration of tasks", () => {
  typeCheckOnly(() => {
    class Order extends Workflow<{ readonly name: string }> {
      static loadHero = (name: string) => ({ name });
      readonly limit = 5;
      async check_fraud() {}
      get risky() {
        return true;
      }
    }
    Order.task("check_fraud");
    Order.task("check_fraud", { dependsOn: "validate", skipIf: "risky" });
    // @ts-expect-error: there is no such method
    Order.task("check_frod");
    // @ts-expect-error: no such method, even with options
    Order.task("check_frod", { dependsOn: "validate" });
    // @ts-expect-error: a number is not a method
    Order.task("limit");
    // @ts-expect-error: a method of Workflow itself is not a task
    Order.task("sleep");
    Order.task("anything", (w) => w.hero.name);
    Order.task("anything", { dependsOn: ["a", "b"] }, (w) => w.hero.name);
    // @ts-expect-error: the class has no such member
    Order.task("anything", (w) => w.hero.nam);
    // @ts-expect-error: a task has a name
    Order.task({ dependsOn: "a" }, () => {});
    // @ts-expect-error: a task has a name
    Order.task(() => {});
    // @ts-expect-error: names, not functions
    Order.task("anything", { dependsOn: () => {} }, () => {});
    // @ts-expect-error: no such option
    Order.task("anything", { dependson: "a" }, () => {});
    // @ts-expect-error: no such condition
    Order.task("anything", { skipIf: "risk" }, () => {});
    // @ts-expect-error: a task gets no iterator
    Order.task("anything", (_w, _iter) => {});
    Order.task("by_name", { job: "CheckFraud", args: { id: 1 }, dependsOn: null });
    Order.task("by_handle", { job: job("CheckFraud", (_args: { id: number }) => {}), args: { id: 1 } });
    // @ts-expect-error: a function is not a job
    Order.task("by_handle", { job: () => {} });
    // @ts-expect-error: the id is a number
    Order.task("by_handle", { job: job("CheckFraud", (_args: { id: number }) => {}), args: { id: "1" } });
    // @ts-expect-error: the job needs its arguments
    Order.task("by_handle", { job: job("CheckFraud", (_args: { id: number }) => {}) });
    Order.task("by_handle", {
      job: job("CheckFraud", (_args: { id: number }) => {}),
      args: (w) => ({ id: w.hero.name.length }),
    });
    // @ts-expect-error: null replaces the step before; there is nothing to add
    Order.step("anything", { alsoDependsOn: null }, () => {});
  });
});
