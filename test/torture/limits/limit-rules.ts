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
  paced: ["pace"],
  pacedApi: ["pace_of_api", "api"],
  customer: ["mutex", "tenant"],
  free: [],
};
const heldOpen = new Set(["mutex"]);

export interface NeededLane {
  readonly lane: string;
  /** Whether the run holds its slot from its first execution to its end, and not while a worker executes it. */
  readonly isHeldOpen: boolean;
}

/** The lanes in which a run needs a slot. */
export function lanesOfRun(workflow: string, input: string): readonly NeededLane[] {
  const { tenant } = JSON.parse(input) as { readonly tenant: string };
  const keys: Readonly<Record<string, string>> = { tenant, mutex: tenant, pace: tenant, region: tenant.slice(-1) };
  return (limitsOf[workflow] ?? []).map((name) => ({
    lane: `${name}\t${keys[name] ?? ""}`,
    isHeldOpen: heldOpen.has(name),
  }));
}
