/** Which limits the workflows of the worlds have: what the code says, for the checker as for the workloads. */

export const limitNames = ["slots", "tenants", "pace", "customers", "machines", "meter"] as const;
export type LimitName = (typeof limitNames)[number];

/** Which runs share a lane, the checker derives from this and from their input. */
export const limitsOfWorkflows = {
  limited: ["slots"],
  keyed: ["tenants", "slots"],
  paced: ["pace"],
  held: ["customers"],
  mail: ["slots"],
} as const satisfies Record<string, readonly LimitName[]>;

export const keyedLimits: ReadonlySet<string> = new Set<LimitName>(["tenants", "customers", "meter"]);
