/** Writes definitions into the registry, so that a process without the code can start workflows by name. */
import type { RegisteredWorkflow } from "../../core/run/stored-schema.js";
import { nameWarning } from "../../define/class/minified-name.js";
import type { Logger } from "../../define/context.js";
import type { WorkflowDefinition } from "../../define/definition.js";
import { jsonSchemaOf } from "../../define/standard-schema.js";
import { stepQueues } from "../../define/step-queues.js";
import type { Store, WorkflowRecord } from "../../store/contract/store.js";
import { shapeRegistration } from "../operate/shape-registry.js";
import { type Registration, registeredBatchOf, registrationOf, stepQueuesOf } from "./registration.js";
import { WorkflowNames } from "./workflow-names.js";

const maxSingleReads = 3;

export class Registrar {
  readonly #store: Store;
  readonly #log: Logger;
  readonly #registeredDefinitions = new Set<WorkflowDefinition>();
  readonly #names = new WorkflowNames();
  /** The names of workflows for which a warning was logged. */
  readonly #warnedNames = new Set<string>();

  constructor(store: Store, log: Logger) {
    this.#store = store;
    this.#log = log;
  }

  /** Registers the definitions in the store, except those that this registrar has registered already. */
  async register(definitions: readonly WorkflowDefinition[]): Promise<void> {
    const newDefinitions = definitions.filter((definition) => !this.#registeredDefinitions.has(definition));
    if (newDefinitions.length === 0) return;
    for (const definition of newDefinitions) this.#names.reserveForWorkflow(definition);
    this.#warnOfNames(newDefinitions);
    const earlierQueues = await this.#readEarlierQueues(newDefinitions);
    const shapes = newDefinitions.flatMap((definition) => shapeRegistration(definition) ?? []);
    await this.#store.registerWorkflows([
      ...newDefinitions.map(
        ({ name, queue, version, priority, startByMs, tags, declared, hero, inputSchema, batch }) => {
          const queues = stepQueues(declared, earlierQueues.get(name));
          const isChain = declared?.kind === "chain" ? { isChain: true } : {};
          const steps = declared === null ? {} : { hero, stepQueues: [...queues], nodes: declared.nodes, ...isChain };
          const jsonSchema = jsonSchemaOf(inputSchema);
          const form = jsonSchema === null ? {} : { inputSchema: jsonSchema };
          const batching = batch === null ? {} : { batch: registeredBatchOf(batch) };
          const limits = startByMs === null ? {} : { startByMs };
          const registered: RegisteredWorkflow = { priority, tags, ...limits, ...steps, ...form, ...batching };
          return { name, queue, version, signature: null, graph: JSON.stringify(registered) };
        },
      ),
      ...shapes,
    ]);
    for (const definition of newDefinitions) this.#registeredDefinitions.add(definition);
  }

  #warnOfNames(definitions: readonly WorkflowDefinition[]): void {
    for (const definition of definitions) {
      const warning = this.#warnedNames.has(definition.name) ? null : nameWarning(definition);
      if (warning === null) continue;
      this.#warnedNames.add(definition.name);
      this.#log.warn(warning);
    }
  }

  /**
   * Reads the former queues of steps from the registry. They stay registered, because a run may be parked in a queue that
   * the code no longer names, and workers must still find that run.
   */
  async #readEarlierQueues(definitions: readonly WorkflowDefinition[]): Promise<Map<string, readonly string[]>> {
    const earlierQueues = new Map<string, readonly string[]>();
    for (const { name, declared } of definitions) {
      const record = declared === null ? null : await this.#store.workflow(name);
      if (record !== null) earlierQueues.set(name, stepQueuesOf(record));
    }
    return earlierQueues;
  }

  /**
   * Registers the definition before a start. If the caller has an open transaction, this does not wait for the registration:
   * SQLite has one writer, so the registration waits for the caller's transaction, and waiting for it here would deadlock.
   */
  async registerFor(definition: WorkflowDefinition, tx: unknown): Promise<void> {
    const registering = this.register([definition]);
    if (tx === undefined) return registering;
    registering.catch((error) => this.#log.warn(`Workflow "${definition.name}" could not be registered yet.`, error));
  }

  /** @throws InvalidInputError if the name belongs to a workflow */
  reserveForBuiltGraph(name: string): Promise<void> {
    return this.#names.reserveForBuiltGraph(name, async () => (await this.#store.workflow(name)) !== null);
  }

  async registration(name: string): Promise<Registration | null> {
    const record = await this.#store.workflow(name);
    return record === null ? null : registrationOf(record);
  }

  /** The records of these workflows, by name; those that are not registered are missing. */
  async records(names: readonly string[]): Promise<ReadonlyMap<string, WorkflowRecord>> {
    // Of more names, one statement reads the whole registry, which has few rows.
    const records =
      names.length > maxSingleReads
        ? await this.#store.maintenance.workflows()
        : await Promise.all(names.map((name) => this.#store.workflow(name)));
    return new Map(records.flatMap((record) => (record === null ? [] : [[record.name, record] as const])));
  }
}
