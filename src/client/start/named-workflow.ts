/** A workflow that is known by its name, for processes that do not have its code. */
import { checkOptions } from "../../core/naming/check-options.js";
import type { RunHandle } from "../run-handle.js";
import { type StartOptions, startManyOptions, startOptions } from "./new-run.js";
import type { StartArgs } from "./start-args.js";

interface NamedWorkflowPort<Input, Output> {
  start(inputs: readonly Input[], options: StartOptions | undefined): Promise<RunHandle<Input, Output>[]>;
  run(id: string): RunHandle<Input, Output>;
}

/** A workflow that is known by its name, as `pawl.workflow(name)` returns it. */
export class NamedWorkflow<Input = unknown, Output = unknown> {
  /** The name of the workflow. */
  readonly name: string;
  readonly #port: NamedWorkflowPort<Input, Output>;

  /** @internal */
  constructor(name: string, port: NamedWorkflowPort<Input, Output>) {
    this.name = name;
    this.#port = port;
  }

  /**
   * Starts a run. Throws WorkflowNotFoundError if no process has registered the name. The worker checks the input, and
   * a run with an invalid input fails.
   */
  async trigger(...args: StartArgs<Input>): Promise<RunHandle<Input, Output>> {
    const [input, options] = args as [Input, StartOptions?];
    if (options !== undefined) checkOptions(`trigger() of "${this.name}"`, options, startOptions);
    return (await this.#port.start([input as Input], options))[0] as RunHandle<Input, Output>;
  }

  /** Starts many runs in few commits, without keys and heroes, which belong to one run each. */
  async triggerMany(
    inputs: readonly Input[],
    options?: Omit<StartOptions, "idempotencyKey" | "hero">,
  ): Promise<RunHandle<Input, Output>[]> {
    if (options !== undefined) checkOptions(`triggerMany() of "${this.name}"`, options, startManyOptions);
    return this.#port.start(inputs, options);
  }

  /** Returns the handle of a run of the workflow. */
  run(id: string): RunHandle<Input, Output> {
    return this.#port.run(id);
  }
}
