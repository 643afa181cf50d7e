import type { RunsFilter } from "../../client/inspect/list-runs.js";
import type { RunInfo } from "../../client/inspect/run-info.js";
import { heroArgument, integerArgument, timeArgument } from "../arguments.js";
import { command } from "../command.js";
import { withPawl } from "../database.js";
import { colourOf } from "../paint.js";
import { runStatuses } from "../statuses.js";
import { type Cell, type Column, table } from "../table.js";
import { durationText, relativeTime } from "../times.js";

export const runs = command({
  name: "runs",
  about: "List runs, newest first",
  args: [],
  options: {
    workflow: { type: "string", value: "<name>", about: "Only runs of this workflow" },
    status: { type: "string", value: "<status>", choices: runStatuses, about: "Only runs with this status" },
    active: { type: "boolean", about: "Only runs that have not ended" },
    root: { type: "boolean", about: "Only runs that no other run has started: no children, no nodes of graphs" },
    hero: { type: "string", value: "<type:id>", about: "Only runs about this hero" },
    key: { type: "string", value: "<key>", about: "Only the runs that were started with this idempotency key" },
    tag: { type: "string", value: "<tag>", about: "Only runs with this tag" },
    version: { type: "string", value: "<version>", about: "Only runs of this version of their workflow" },
    step: {
      type: "string",
      value: "<name>",
      about: "Only runs that failed or are paused at this step, or wait for it",
    },
    error: { type: "string", value: "<text>", about: "Only runs whose error contains this text" },
    fingerprint: { type: "string", value: "<id>", about: "Only runs with this error, as pawl errors lists it" },
    "took-at-least": { type: "string", value: "<duration>", about: 'Only runs that have taken at least "5m"' },
    "took-at-most": { type: "string", value: "<duration>", about: 'Only runs that have taken at most "5m"' },
    "created-after": { type: "string", value: "<time>", about: 'Only runs since a date, or "2h" ago' },
    "created-before": { type: "string", value: "<time>", about: 'Only runs until a date, or "2h" ago' },
    limit: { type: "string", value: "<n>", about: "How many; default 20, at most 1000" },
    cursor: { type: "string", value: "<next>", about: "Continue after the page that printed this cursor" },
  },
  example: "pawl runs --status failed --created-after 2h",

  run: async (call) => {
    const { options, out } = call;
    const now = out.now();
    const filter: RunsFilter = {
      limit: integerArgument("limit", options.limit) ?? 20,
      ...withoutUndefined({
        workflow: options.workflow,
        status: options.status as RunInfo["status"] | undefined,
        active: options.active,
        hero: heroArgument(options.hero),
        idempotencyKey: options.key,
        tag: options.tag,
        version: options.version,
        step: options.step,
        error: options.error,
        fingerprint: options.fingerprint,
        tookAtLeast: options["took-at-least"],
        tookAtMost: options["took-at-most"],
        parentId: options.root === true ? null : undefined,
        createdAfter: timeArgument("created-after", options["created-after"], now),
        createdBefore: timeArgument("created-before", options["created-before"], now),
        cursor: options.cursor,
      }),
    };
    const page = await withPawl(call, (pawl) => pawl.runs(filter));
    out.print(page, () => {
      const more = page.next === null ? [] : [out.paint("dim", moreText(page.next, page.isCut))];
      if (page.runs.length === 0) return more.length === 0 ? "No runs." : more;
      const versions = page.runs.some(({ version }) => version !== "");
      const rows = page.runs.map((run) => row(run, now, versions));
      const lines = table(columnsWith(versions), rows, {
        columns: out.columns,
        paint: out.paint,
        cutWhole: out.isTerminal,
      });
      return [...lines, ...more];
    });
  },
});

const moreText = (next: string, isCut: boolean) =>
  isCut
    ? `10,000 runs were examined and few of them match; search on with --cursor ${next}`
    : `There are more: --cursor ${next}`;

/** Versions have a column only if one of the listed runs has a version, because most workflows have none. */
const columnsWith = (versions: boolean): readonly Column[] => [
  { title: "id", whole: true },
  { title: "workflow" },
  ...(versions ? [{ title: "version" }] : []),
  { title: "status" },
  { title: "created" },
  { title: "took", align: "right" },
  { title: "", spareFrom: 12 },
];

function row(run: RunInfo, now: number, versions: boolean): Cell[] {
  const { id, workflow, version, status, createdAt, startedAt, finishedAt } = run;
  const took =
    startedAt === null || finishedAt === null ? "" : durationText(finishedAt.getTime() - startedAt.getTime());
  return [
    id,
    workflow,
    ...(versions ? [version] : []),
    // Damage is shown as a status, because a narrow terminal has no room for the note.
    run.damaged.length > 0 ? { text: "damaged", colour: "red" } : { text: status, colour: colourOf(status) },
    relativeTime(createdAt, now),
    took,
    noteOf(run),
  ];
}

/** Returns the text of the last column: the hero, and why the run makes no progress. */
function noteOf({ hero, status, error, pauseReason, waitingFor, damaged }: RunInfo): string {
  if (damaged.length > 0) return `damaged: ${damaged.map(({ field }) => field).join(", ")}; see: pawl verify`;
  const [waiting] = status === "waiting" ? waitingFor : [];
  const signalNames = waiting === undefined ? null : "names" in waiting ? waiting.names.join(", ") : null;
  const reason =
    error?.message ??
    pauseReason ??
    (waiting === undefined ? null : [waiting.kind, signalNames].filter(Boolean).join(" "));
  return [hero === null ? null : `${hero.type} ${hero.id}`, reason].filter((part) => part !== null).join(" · ");
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Drops the keys whose value is undefined. */
function withoutUndefined<T extends object>(values: T): Defined<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Defined<T>;
}
