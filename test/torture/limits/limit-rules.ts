/** What the checker knows of the workflows in test/processes/programs/limits-worker.mjs: which slots a run must have. */

const limitsOf: Readonly<Record<string, readonly string[]>> = {
  plain: ["tenant"],
  fair: ["api"],
  turns: [],
  triple: ["region", "tenant", "api"],
  sleeper: ["region"],
  listener: ["api"],
  flaky: ["tenant", "api"],
  pauser: ["tenant"],
  child: ["tenant", "region"],
  parent: ["tenant", "region"],
  order: ["tenant"],
  Sweep: ["region"],
  free: [],
};

export const workflowNames: readonly string[] = Object.keys(limitsOf);

/** The lanes in which a run needs a slot while a worker executes it. */
export function lanesOfRun(workflow: string, input: string): readonly string[] {
  const { tenant } = JSON.parse(input) as { readonly tenant: string };
  const keys: Readonly<Record<string, string>> = { tenant, region: tenant.slice(-1), api: "" };
  return (limitsOf[workflow] ?? []).map((name) => `${name}\t${keys[name]}`).sort();
}
