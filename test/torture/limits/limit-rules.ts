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
  caller: [],
  limitedCaller: ["tenant", "api"],
  free: [],
};
/** The limits of steps, by workflow and body. */
const limitsOfBodies: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  caller: { left: "calls", right: "calls", ask: "tokens", last: "calls_of_tenant" },
  limitedCaller: { first: "calls_of_tenant", second: "calls" },
};
const heldOpen = new Set(["mutex"]);

export interface NeededLane {
  readonly lane: string;
  /** Whether the run holds its slot from its first execution to its end, and not while a worker executes it. */
  readonly isHeldOpen: boolean;
}

/** The lanes in which a run needs a slot. */
export const lanesOfRun = (workflow: string, input: string): readonly NeededLane[] =>
  (limitsOf[workflow] ?? []).map((name) => ({ lane: laneOf(name, input), isHeldOpen: heldOpen.has(name) }));

/** The lane in which a body needs a slot; null if it needs none. */
export function laneOfBody(workflow: string, body: string, input: string): string | null {
  const name = limitsOfBodies[workflow]?.[body];
  return name === undefined ? null : laneOf(name, input);
}

function laneOf(name: string, input: string): string {
  const { tenant } = JSON.parse(input) as { readonly tenant: string };
  const keys: Readonly<Record<string, string>> = {
    ...{ tenant, mutex: tenant, pace: tenant, calls_of_tenant: tenant },
    region: tenant.slice(-1),
  };
  return `${name}\t${keys[name] ?? ""}`;
}
