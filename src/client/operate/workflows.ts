/** Lists the registered workflows. */
import type { Store, WorkflowRecord } from "../../store/contract/store.js";
import { isReadable, registrationOf } from "../start/registration.js";
import { isShapeRecord } from "./shape-registry.js";

/** A registered workflow, as `pawl.workflows()` returns it. */
export interface WorkflowInfo {
  /** The name of the workflow. */
  readonly name: string;
  /** The queue of its runs. */
  readonly queue: string;
  /** The version that was registered last; "" if it has none. */
  readonly version: string;
  /** The steps that its class or graph declares; empty for a function, which declares none. */
  readonly steps: readonly {
    /** The name of the step. */
    readonly name: string;
    /** Whether it is a step or a branch of a graph. */
    readonly kind: "step" | "branch";
    /** The names of its predecessors. */
    readonly after: readonly string[];
  }[];
  /** The JSON Schema of its inputs, if its schema library offers one (Standard JSON Schema); otherwise null. */
  readonly inputSchema: Readonly<Record<string, unknown>> | null;
  /** When it was first registered. */
  readonly createdAt: Date;
}

export async function listWorkflows(store: Store): Promise<WorkflowInfo[]> {
  const records = await store.maintenance.workflows();
  return records
    .filter((record) => !isShapeRecord(record))
    .map((record) => {
      const { name, queue, version, createdAt } = record;
      return { ...{ name, queue, version }, ...declarationOf(record), createdAt: new Date(createdAt) };
    });
}

/** A registration that cannot be read must not make the whole list fail. */
function declarationOf(record: WorkflowRecord): Pick<WorkflowInfo, "steps" | "inputSchema"> {
  if (!isReadable(record)) return { steps: [], inputSchema: null };
  const { nodes, inputSchema } = registrationOf(record);
  return { steps: (nodes ?? []).map(({ name, kind, after }) => ({ name, kind, after })), inputSchema };
}
