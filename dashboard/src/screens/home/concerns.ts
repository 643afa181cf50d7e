/** What needs a person, made from counts, errors, queues, schedules and workers. Each concern opens the list behind it. */
import type { Answer } from "../../api/api.js";
import { searchOf } from "../../search/run-search.js";
import { formatCapped, plural } from "../../ui/format.js";
import { isLate, scheduleAddress } from "../schedules/schedule.js";

export interface Facts {
  readonly counts: Answer<"countRuns">;
  readonly errors: Answer<"listErrors">;
  readonly queues: Answer<"listQueues">["queues"];
  readonly workers: Answer<"listWorkers">["workers"];
  readonly schedules: Answer<"listSchedules">["schedules"];
  readonly now: number;
  /** Writes a duration, such as "5 m 00 s". */
  readonly writeSpan: (ms: number) => string;
}

export interface Concern {
  readonly key: string;
  /** How many runs it is about; null: the title says it. */
  readonly count: string | null;
  readonly title: string;
  readonly detail: string | null;
  /** The address of what is behind it, below the base path. */
  readonly to: string;
  /** Whether it began within the last day. */
  readonly isNew: boolean;
  /** When it happened last; null if that is not known. */
  readonly lastAt: string | null;
}

export interface ConcernGroup {
  readonly kind: "paused" | "failed" | "stuck" | "schedules" | "workers";
  readonly title: string;
  readonly to: string;
  readonly concerns: readonly Concern[];
}

const dayMs = 86_400_000;
const stuckAfterMs = 60_000;

const runsTo = (terms: Readonly<Record<string, string>>): string => `/runs?q=${encodeURIComponent(searchOf(terms))}`;

/** The groups that have something to say, the most urgent first. */
export function concernsOf(facts: Facts): readonly ConcernGroup[] {
  return [pausedGroup(facts), failedGroup(facts), stuckGroup(facts), schedulesGroup(facts), workersGroup(facts)].filter(
    ({ concerns }) => concerns.length > 0,
  );
}

type ErrorGroup = Facts["errors"]["errors"][number];

function errorConcern(group: ErrorGroup, facts: Facts): Concern {
  const { status, fingerprint, workflow, step, name, message, count } = group;
  return {
    key: `${status} ${workflow} ${fingerprint}`,
    count: formatCapped(count, facts.errors.capped.includes(status)),
    title: step === null ? workflow : `${workflow} at ${step}`,
    detail: message === null || message === "[hidden]" ? name : `${name}: ${message}`,
    to: runsTo({ status, workflow, fingerprint }),
    isNew: facts.now - Date.parse(group.firstRunAt) < dayMs,
    lastAt: group.lastRunAt,
  };
}

function pausedGroup(facts: Facts): ConcernGroup {
  const { counts, errors } = facts;
  const total = counts.total.paused;
  const isCapped = counts.capped.includes("paused");
  const groups = errors.errors.filter(({ status }) => status === "paused");
  const byError = groups.reduce((sum, { count }) => sum + count, 0);
  const concerns = groups.map((group) => errorConcern(group, facts));
  // Groups beyond the listed 200, and runs that were resumed between the two answers, make this number approximate.
  const byPeople = isCapped ? 0 : total - byError;
  if (byPeople > 0)
    concerns.push({
      key: "paused by people",
      count: formatCapped(byPeople, false),
      title: "paused on purpose",
      detail: "By a person, or by the code of the workflow. They wait until a person resumes them.",
      to: runsTo({ status: "paused" }),
      isNew: false,
      lastAt: null,
    });
  return {
    kind: "paused",
    title: `${formatCapped(total, isCapped)} paused`,
    to: runsTo({ status: "paused" }),
    concerns,
  };
}

/** Failures of earlier days have been seen: Errors has them. */
function failedGroup(facts: Facts): ConcernGroup {
  const groups = facts.errors.errors.filter(({ status, lastDayCount }) => status === "failed" && lastDayCount > 0);
  const total = groups.reduce((sum, { lastDayCount }) => sum + lastDayCount, 0);
  return {
    kind: "failed",
    title: `${formatCapped(total, facts.errors.capped.includes("failed"))} failed in the last 24 hours`,
    to: runsTo({ status: "failed", after: "-24h" }),
    concerns: groups.map((group) => ({
      ...errorConcern(group, facts),
      count: formatCapped(group.lastDayCount, facts.errors.capped.includes("failed")),
      to: runsTo({ status: "failed", workflow: group.workflow, fingerprint: group.fingerprint, after: "-24h" }),
    })),
  };
}

type Queue = Facts["queues"][number];

function stuckGroup(facts: Facts): ConcernGroup {
  const concerns = facts.queues.flatMap((queue) => stuckConcern(queue, facts) ?? []);
  return { kind: "stuck", title: `${plural(concerns.length, "queue")} stuck`, to: "/queues", concerns };
}

function stuckConcern(queue: Queue, { writeSpan }: Facts): Concern | null {
  const { name, depth, depthCapped, oldestAgeMs, workers, paused, workflows } = queue;
  const oldest = oldestAgeMs === null ? "" : ` The oldest has been due for ${writeSpan(oldestAgeMs)}.`;
  const [workflow, ...others] = workflows;
  const isOneWorkflow = workflow !== undefined && others.length === 0;
  const common = {
    key: `queue ${name}`,
    count: formatCapped(depth, depthCapped),
    to: isOneWorkflow && paused === null ? runsTo({ workflow, active: "true" }) : "/queues",
    isNew: false,
    lastAt: paused?.at ?? null,
  };
  if (paused !== null) {
    const by = paused.by === null ? "" : ` by ${paused.by}`;
    return {
      ...common,
      title: `due in ${name}, which is paused${by}`,
      detail: paused.reason ?? (oldest.trim() || null),
    };
  }
  if (depth === 0) return null;
  if (workers.length === 0)
    return {
      ...common,
      title: `due in ${name}, and no worker takes them`,
      detail: `Start a worker that has them.${oldest}`,
    };
  if ((oldestAgeMs ?? 0) <= stuckAfterMs) return null;
  return { ...common, title: `due in ${name}`, detail: `Its workers do not keep up.${oldest}` };
}

type Schedule = Facts["schedules"][number];

/** Schedules that should start runs and do not. */
function schedulesGroup(facts: Facts): ConcernGroup {
  const concerns = facts.schedules.flatMap((schedule) => scheduleConcern(schedule, facts) ?? []);
  return {
    kind: "schedules",
    title: `${plural(concerns.length, "schedule")} that should start runs and ${concerns.length === 1 ? "does" : "do"} not`,
    to: "/schedules",
    concerns,
  };
}

function scheduleConcern(schedule: Schedule, { writeSpan }: Facts): Concern | null {
  const { name, app, last, status, pausedAt, pausedBy, pauseReason } = schedule;
  const common = { key: `schedule ${name}`, count: null, to: scheduleAddress(name), isNew: false };
  if (isLate(schedule)) {
    const start = app === null ? "Start a worker." : `Start a worker of the application ${app}.`;
    const late = writeSpan(schedule.lateMs);
    return {
      ...common,
      title: `${name} is late by ${late}`,
      detail: `No live worker fires it. ${start}`,
      lastAt: null,
    };
  }
  // A person who has paused a schedule knows of it; one that was paused by its failures waits for a person.
  if (status === "paused" && pausedBy === null && pauseReason !== null)
    return { ...common, title: `${name} is paused`, detail: pauseReason, lastAt: pausedAt };
  if (status === "active" && last?.outcome === "failed_to_start")
    return { ...common, title: `${name} failed to start its run`, detail: "Its ledger says why.", lastAt: last.at };
  return null;
}

type Worker = Facts["workers"][number];

const titlesOf = ({ workflows, jobs }: Worker): readonly string[] => [
  ...workflows.map(({ name, version }) => (version === "" ? name : `${name} ${version}`)),
  ...jobs,
];

/**
 * Workers that went silent within a day and left workflows that no live worker has. A worker that was stopped on purpose looks
 * the same, so a worker whose workflows others have is no concern.
 */
function workersGroup({ workers, now }: Facts): ConcernGroup {
  const served = new Set(workers.filter(({ live }) => live).flatMap(titlesOf));
  const concerns = workers
    .filter(({ live, heartbeatAt }) => !live && now - Date.parse(heartbeatAt) < dayMs)
    .sort((a, b) => b.heartbeatAt.localeCompare(a.heartbeatAt))
    .flatMap((worker): Concern[] => {
      const lost = titlesOf(worker).filter((title) => !served.has(title));
      // The latest worker that had a workflow stands for the earlier ones.
      for (const title of lost) served.add(title);
      if (lost.length === 0) return [];
      return [
        {
          key: worker.id,
          count: null,
          title: `${worker.name} on ${worker.host} is silent`,
          detail: `No live worker has ${lost.join(", ")}.`,
          to: "/workers",
          isNew: false,
          lastAt: worker.heartbeatAt,
        },
      ];
    });
  return { kind: "workers", title: `${plural(concerns.length, "worker")} silent`, to: "/workers", concerns };
}
