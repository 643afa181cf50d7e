/** The base class that gives instances of workflow classes all members of `ctx`. */
import { InvalidStateError } from "../../core/errors/errors.js";
import type { WorkflowContext } from "../context.js";
import type { InstanceContext } from "./workflow-instance.js";

export interface Binding {
  readonly ctx: WorkflowContext<any>;
  readonly hero: unknown;
  readonly idempotencyKey: string;
}

/**
 * The binding of the instance that is being constructed. It is set before the constructor is called, so that field
 * initializers can use the context.
 */
let bindingInConstruction: Binding | null = null;
let contextOf: (instance: ContextMembers) => WorkflowContext<any>;

class ContextMembers {
  readonly #binding = bindingInConstruction;

  static {
    contextOf = (instance) => {
      if (instance.#binding !== null) return instance.#binding.ctx;
      throw new InvalidStateError(
        "An instance of a workflow class works only inside its steps: Pawl makes one for each execution. Use pawl.start(Class) to start a run.",
      );
    };
  }

  get hero(): unknown {
    return this.#binding?.hero ?? null;
  }

  get idempotencyKey(): string {
    return this.#binding?.idempotencyKey ?? "";
  }
}

const contextMembers = {
  runId: "value",
  workflowName: "value",
  input: "value",
  schedule: "value",
  attempt: "value",
  executionId: "value",
  abortSignal: "value",
  log: "value",
  resumedBy: "value",
  step: "method",
  transaction: "method",
  sleep: "method",
  sleepUntil: "method",
  waitForSignal: "method",
  waitForAny: "method",
  waitForAll: "method",
  race: "method",
  run: "method",
  start: "method",
  map: "method",
  branch: "method",
  now: "method",
  random: "method",
  uuid: "method",
  progress: "method",
  patched: "method",
  cancel: "method",
  pause: "method",
  skip: "method",
  reattempt: "method",
  finish: "method",
  suspend: "method",
} satisfies Record<keyof WorkflowContext, "value" | "method">;

for (const [name, kind] of Object.entries(contextMembers) as [keyof WorkflowContext, "value" | "method"][]) {
  const get = function (this: ContextMembers) {
    return contextOf(this)[name];
  };
  const value = function (this: ContextMembers, ...args: unknown[]) {
    const ctx = contextOf(this) as unknown as Record<string, (...args: unknown[]) => unknown>;
    return ctx[name]?.(...args);
  };
  Object.defineProperty(ContextMembers.prototype, name, kind === "value" ? { get } : { value, writable: true });
}

/** Names that members of a workflow class must not have, because they would hide members of the context. */
export const reservedNames: ReadonlySet<string> = new Set([...Object.keys(contextMembers), "hero", "idempotencyKey"]);

export const WithContext = ContextMembers as unknown as abstract new <Hero, Input, Output>() => InstanceContext<
  Hero,
  Input,
  Output
>;

/** Makes an instance whose context members belong to one execution of a step. */
export function constructWith<Instance>(type: new () => Instance, newBinding: Binding): Instance {
  bindingInConstruction = newBinding;
  try {
    return new type();
  } finally {
    bindingInConstruction = null;
  }
}
