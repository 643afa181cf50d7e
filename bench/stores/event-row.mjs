// The row that the limits insert: an event as a step writes it, without its key.

export const eventRow = ["step.completed", 1, "charge", 1, "success", '{"ms":0,"output":{"ok":true,"total":1250}}'];
export const columns = "run_id, seq, type, span, node, attempt, outcome, data, at";
