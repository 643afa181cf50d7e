/** Policies and outcomes in plain language. */
import { escapeHidden, formatCount, plural } from "../../ui/format.js";
import type { IconName } from "../../ui/icon.js";
import type { RunStatus } from "../../ui/status.js";
import { formatDuration } from "../../ui/time.js";
import type { Occurrence, Schedule } from "./schedule.js";
import { isKnownZone, zoneText } from "./zone-time.js";

export const overlapWords: Readonly<Record<Schedule["overlap"], string>> = {
  skip: "While a run is open, occurrences are skipped.",
  bufferOne: "While a run is open, one occurrence waits for its end, and further ones are skipped.",
  bufferAll: "While a run is open, up to 100 occurrences wait for its end.",
  cancelOther: "A run that is open is canceled, and the new one starts after its end.",
  allowAll: "Runs may overlap.",
};

const units = [
  [86_400_000, "day"],
  [3_600_000, "hour"],
  [60_000, "minute"],
  [1_000, "second"],
  [1, "millisecond"],
] as const;

/** A setting that is a time, exactly: "6 hours", "1 day 12 hours". */
export function spanText(ms: number): string {
  let rest = ms;
  const parts = units.flatMap(([unitMs, noun]) => {
    const count = Math.floor(rest / unitMs);
    rest -= count * unitMs;
    return count === 0 ? [] : [plural(count, noun)];
  });
  return parts.length === 0 ? "0 seconds" : parts.join(" ");
}

export function catchUpText({ catchUp: { mode, withinMs } }: Pick<Schedule, "catchUp">): string {
  const within = withinMs === null ? "" : ` that is at most ${spanText(withinMs)} late`;
  if (mode === "latest") return `After downtime or a pause, one run for the latest occurrence${within}.`;
  if (mode === "none") return `Occurrences more than ${spanText(withinMs ?? 60_000)} late do not run.`;
  return `After downtime or a pause, every occurrence${within}, at most 100.`;
}

/** What became of an occurrence: the outcome in the ledger, and if it ran, what became of its run. */
export type OutcomeKind =
  | Exclude<Occurrence["outcome"], "ran" | "paused">
  | "not_run_paused"
  | "ran"
  | "open"
  | "run_completed"
  | "run_failed"
  | "run_canceled"
  | "run_paused";

interface OutcomeLook {
  readonly label: string;
  readonly tone: RunStatus;
  readonly icon: IconName;
}

/** In the order of the legend. Each icon stands for one kind, so that no two are told apart by their colour alone. */
export const outcomeLooks: Readonly<Record<OutcomeKind, OutcomeLook>> = {
  run_completed: { label: "completed", tone: "completed", icon: "check" },
  open: { label: "run is open", tone: "running", icon: "play" },
  run_paused: { label: "run is paused", tone: "paused", icon: "pause" },
  run_failed: { label: "run failed", tone: "failed", icon: "cross" },
  run_canceled: { label: "run was canceled", tone: "canceled", icon: "slash" },
  ran: { label: "ran", tone: "completed", icon: "done" },
  failed_to_start: { label: "failed to start", tone: "failed", icon: "errors" },
  buffered: { label: "waits for the run before it", tone: "waiting", icon: "clock" },
  requested: { label: "waits for a worker", tone: "waiting", icon: "workers" },
  skipped_overlap: { label: "skipped, a run was open", tone: "pending", icon: "skip" },
  skipped_late: { label: "skipped, too late", tone: "paused", icon: "late" },
  skipped_buffer_full: { label: "skipped, too many were waiting", tone: "paused", icon: "queues" },
  not_run_paused: { label: "not run, it was paused", tone: "pending", icon: "stop" },
  retired: { label: "not run, it was retired", tone: "pending", icon: "minus" },
};

export function kindOf({
  outcome,
  pending,
  runStatus,
}: Pick<Occurrence, "outcome" | "pending" | "runStatus">): OutcomeKind {
  if (outcome === "paused") return "not_run_paused";
  if (outcome !== "ran") return outcome;
  if (runStatus === "completed" || runStatus === "failed" || runStatus === "canceled" || runStatus === "paused")
    return `run_${runStatus}`;
  // A run that was pruned has ended, but how is not known any more.
  return runStatus === null && pending === null ? "ran" : "open";
}

/** The last occurrence of a schedule is told without its run. */
export const kindOfLast = (outcome: Occurrence["outcome"]): OutcomeKind =>
  outcome === "paused" ? "not_run_paused" : outcome;

const zoneOf = (zone: string): string => (isKnownZone(zone) ? zone : "UTC");

/** The instants that a row of the ledger stands for: "Sun 2026-10-25 02:30", or the first and the last of several. */
export function instantTexts({ scheduledFor, scheduledUntil, count }: Occurrence, zone: string): readonly string[] {
  const instants = count === 1 ? [scheduledFor] : [scheduledFor, scheduledUntil];
  return instants.map((at) => zoneText(zoneOf(zone), Date.parse(at)));
}

/** What is special about an occurrence, in a few words; "" for an ordinary one. */
export function specialsOf({ manual, backfill, by, reason, missed, count, latenessMs }: Occurrence): string {
  const who = by === null ? "" : ` by ${escapeHidden(by)}`;
  return [
    count === 1 ? null : plural(count, "occurrence"),
    manual ? `triggered${who}` : backfill ? `backfill${who}` : null,
    reason === null ? null : escapeHidden(reason),
    latenessMs === null || latenessMs < 1_000 ? null : `${formatDuration(latenessMs)} late`,
    missed === 0 ? null : `stands for ${formatCount(missed)} missed before it`,
  ]
    .filter((part) => part !== null)
    .join(", ");
}

/** One line about an occurrence. */
export function aboutOccurrence(occurrence: Occurrence, zone: string): string {
  const { error } = occurrence;
  return [
    instantTexts(occurrence, zone).join(" to "),
    specialsOf(occurrence),
    error === null ? "" : escapeHidden(error),
  ]
    .filter((part) => part !== "")
    .join(" · ");
}
