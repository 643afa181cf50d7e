/** Takes keys from runs of the memory store, and replaces what a run was started with. */
import { startDeadlineOf } from "../../core/run/transition.js";
import type { CommitResult, KeyChange, KeyMove, NewRun, StartReplacement } from "../contract/store.js";
import { type MemoryRows, startKeyOf } from "./rows.js";
import type { MemoryRun } from "./task.js";

/** A start whose other key is held by a run that does not give it up is a conflict, too. */
export function findKeyConflict(
  rows: MemoryRows,
  { openRunId, moves }: KeyChange,
  starts: readonly NewRun[],
): CommitResult | null {
  if (openRunId !== null && !rows.tasks.has(openRunId)) return { kind: "conflict", runId: openRunId };
  for (const { runId, key, value } of moves)
    if (rows.runs.get(runId)?.[key] !== value) return { kind: "conflict", runId };
  const isGiven = (key: KeyMove["key"], { id }: MemoryRun) =>
    moves.some((move) => move.key === key && move.runId === id && move.to === null);
  for (const run of starts) {
    if (rows.runs.has(run.id)) continue;
    const startKeyHolder = run.startKey === null ? undefined : rows.startKeys.get(startKeyOf(run));
    const heroKeyHolder = run.heroKey === null ? undefined : rows.heroKeys.get(run.heroKey);
    if (startKeyHolder !== undefined && !isGiven("startKey", startKeyHolder))
      return { kind: "conflict", runId: startKeyHolder.id };
    if (heroKeyHolder !== undefined && !isGiven("heroKey", heroKeyHolder))
      return { kind: "conflict", runId: heroKeyHolder.id };
  }
  return null;
}

export function applyKeyChange(rows: MemoryRows, { moves, replacement }: KeyChange, at: number): void {
  for (const move of moves) moveKey(rows, move);
  if (replacement !== null) replaceStart(rows, replacement, at);
}

function moveKey(rows: MemoryRows, { runId, key, value, to }: KeyMove): void {
  const holder = rows.runs.get(runId) as MemoryRun;
  const mapKey = key === "startKey" ? startKeyOf(holder) : value;
  const holders = key === "startKey" ? rows.startKeys : rows.heroKeys;
  Object.assign(holder, { [key]: null });
  holders.delete(mapKey);
  const next = to === null ? undefined : rows.runs.get(to);
  if (next === undefined) return;
  Object.assign(next, { [key]: value });
  holders.set(mapKey, next);
}

function replaceStart(rows: MemoryRows, replacement: StartReplacement, at: number): void {
  const { runId, version, priority, input, tags, startedBy } = replacement;
  const run = rows.runs.get(runId);
  if (run === undefined) return;
  Object.assign(run, { version, priority, input, tags, startedBy });
  Object.assign(rows.tasks.get(runId) ?? {}, { priority });
  const deadline = startDeadlineOf(replacement, at);
  if (deadline === null) rows.startDeadlines.delete(runId);
  else rows.startDeadlines.set(runId, deadline);
}
