/** Looks in plans of PostgreSQL for scans whose cost grows with a table. */

/** A value as it is written in a statement. */
export function literal(value: unknown): string {
  return value === null || value === undefined ? "NULL" : `'${String(value).replaceAll("'", "''")}'`;
}

export interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Cond"?: string;
  readonly "Join Filter"?: string;
  readonly Plans?: readonly Plan[];
}

/** Workers, paused queues and applications are few. */
const smallTables: ReadonlySet<string> = new Set(["pawl_workers", "pawl_queues", "pawl_schedule_apps"]);

/**
 * Scans of large tables that neither begin at a position of an index nor end at a limit. A sort between a scan and its
 * limit reads all of the scan first, unless it only sorts rows that the index has as equal.
 */
export function* findUnlimitedScans(plan: Plan, isLimited: boolean): Generator<string> {
  const { "Node Type": type, "Relation Name": table } = plan;
  const reads = type.endsWith("Scan") && table !== undefined && !smallTables.has(table) && table !== "pawl_workflows";
  if (reads && (type === "Seq Scan" || (plan["Index Cond"] === undefined && !isLimited))) yield `${type} of ${table}`;
  if (plan["Join Filter"] !== undefined || type === "Hash Join") yield type;
  const isPassedOn = type === "Limit" || (isLimited && ["Incremental Sort", "Subquery Scan", "Result"].includes(type));
  for (const inner of plan.Plans ?? []) yield* findUnlimitedScans(inner, isPassedOn);
}

/**
 * Plan nodes whose cost grows with a table or with the square of a batch: scans of large tables without an index
 * condition, and loops that compare each row with each. Workers and paused queues are few, so scans of them are
 * allowed.
 */
export function* findBadScans(plan: Plan): Generator<string> {
  const { "Node Type": type, "Relation Name": table } = plan;
  const reads = type.endsWith("Scan") && table !== undefined && !smallTables.has(table);
  if (reads && plan["Index Cond"] === undefined) yield `${type} of ${table}`;
  if (plan["Join Filter"] !== undefined) yield `${type} with ${plan["Join Filter"]}`;
  for (const inner of plan.Plans ?? []) yield* findBadScans(inner);
}

/** Scans of large tables without an index condition; a bitmap scan has it in the index scan that builds the bitmap. */
export function* findFullScans(plan: Plan): Generator<string> {
  const { "Node Type": type, "Relation Name": table } = plan;
  const reads =
    type === "Bitmap Index Scan" || (type.endsWith("Scan") && type !== "Bitmap Heap Scan" && table !== undefined);
  if (reads && !smallTables.has(table ?? "") && plan["Index Cond"] === undefined)
    yield `${type} of ${table ?? "an index"}`;
  for (const inner of plan.Plans ?? []) yield* findFullScans(inner);
}

/** The scans of this table. */
export function* scansOf(plan: Plan, table: string): Generator<Plan> {
  if (plan["Relation Name"] === table) yield plan;
  for (const inner of plan.Plans ?? []) yield* scansOf(inner, table);
}
