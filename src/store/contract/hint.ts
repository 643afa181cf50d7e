/**
 * A hint says that something may have changed: it is a reason to read the store again, never a fact. Lost and repeated
 * hints must do no harm.
 */
export type Hint =
  /**
   * Tasks of these routes became ready or got a due time; an empty list means that the sender does not know the routes.
   */
  | { readonly kind: "ready"; readonly workflows: readonly string[] }
  /** These runs received messages. The owner of a run drains them; a run without an owner is ready now. */
  | { readonly kind: "messages"; readonly runIds: readonly string[] }
  /**
   * Schedules have changed, and may have to be looked at earlier than was known. `areFired`: they were only fired, so the
   * next look is no earlier than was known.
   */
  | { readonly kind: "schedules"; readonly areFired?: true }
  /** A run was created that must begin within `inMs` milliseconds, which may be earlier than workers know of. */
  | { readonly kind: "startDeadline"; readonly inMs: number }
  /** Slots of limits are free in lanes in which steps wait, or steps of other processes got a slot. */
  | { readonly kind: "slots" }
  /** These runs ended. */
  | { readonly kind: "done"; readonly runIds: readonly string[] }
  /**
   * Hints may have been missed (after a reconnect, or because there were too many ids to name): read everything again.
   */
  | { readonly kind: "anything" };
