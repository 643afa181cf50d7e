import type { WorkflowDefinition, workflow } from "pawl";

export const stepCount: number;
export const signalCount: number;
export function tickingWorkflow(of: typeof workflow): WorkflowDefinition<void, number>;
