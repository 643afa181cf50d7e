/** Who may do what: the answer of `authorize`, and the one function that all permissions are asked of. */

/** What an access may allow besides reading. `payloads` allows to see inputs, outputs, errors, signals and reasons. */
export const permissions = [
  "start",
  "signal",
  "pause",
  "resume",
  "cancel",
  "skip",
  "retry",
  "queues",
  "schedules",
  "limits",
  "prune",
  "payloads",
] as const;

/** A permission of the HTTP API. */
export type Permission = (typeof permissions)[number];

/**
 * What a request may do. "all": everything. "read": see everything, including payloads, and change nothing. A list, or an
 * object such as `{ start: true }`: see everything but payloads, and do what it names.
 */
export type Access = "all" | "read" | readonly Permission[] | { readonly [Name in Permission]?: boolean };

/** What `authorize` says of a request that it lets in. */
export interface Authorization {
  /** The name of the user or program, which the logs of runs record with each command. */
  readonly user?: string | undefined;
  /** What the request may do. */
  readonly access: Access;
}

/** What a route needs: nothing at all (health), to be let in, or a permission. */
export type Requirement = "nothing" | "read" | Permission;

/**
 * Anything that is not clearly an access allows nothing, not even to read: a misspelled text or permission, a promise, an
 * object of another kind. A mistake in `authorize` is then noticed at once, and opens nothing.
 */
export function isAllowed(access: Access, requirement: Requirement): boolean {
  if (access === "all" || requirement === "nothing") return true;
  if (access === "read") return requirement === "read" || requirement === "payloads";
  const allowed = Array.isArray(access) ? listedPermissions(access) : namedPermissions(access);
  return allowed !== null && (requirement === "read" || allowed.includes(requirement));
}

const isPermission = (name: unknown): name is Permission => (permissions as readonly unknown[]).includes(name);

const listedPermissions = (list: readonly unknown[]) => (list.every(isPermission) ? (list as Permission[]) : null);

function namedPermissions(access: unknown): readonly string[] | null {
  if (typeof access !== "object" || access === null) return null;
  const prototype = Object.getPrototypeOf(access) as unknown;
  if (prototype !== Object.prototype && prototype !== null) return null;
  const entries = Object.entries(access);
  const isValid = ([name, value]: [string, unknown]) =>
    isPermission(name) && (value === undefined || typeof value === "boolean");
  return entries.every(isValid) ? entries.flatMap(([name, value]) => (value === true ? [name] : [])) : null;
}
