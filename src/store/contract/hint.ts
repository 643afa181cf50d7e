/** What may have changed: a reason to look, never a fact. Lost and repeated hints must do no harm. */
export type Hint =
  /** Tasks of these workflows became ready; an empty list: of workflows that the sender does not know. */
  | { readonly kind: "ready"; readonly workflows: readonly string[] }
  /** These runs got mail. Their owner drains it; if no worker owned them they are ready now. */
  | { readonly kind: "messages"; readonly runIds: readonly string[] }
  /** These runs ended. */
  | { readonly kind: "done"; readonly runIds: readonly string[] }
  /** Something may have been missed (a reconnect, too many ids to name): look at everything. */
  | { readonly kind: "anything" };
