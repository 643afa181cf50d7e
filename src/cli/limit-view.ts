/** Draws limits for the terminal: the list, and one limit with its keys. */
import type { LaneInfo, LimitDetails, LimitInfo, LimitRate } from "../client/limits/limit-info.js";
import type { Output } from "./output.js";
import { type Cell, printable, table, truncate } from "./table.js";
import { absoluteAndRelativeTime, durationText, relativeTime } from "./times.js";

const concurrencyText = (concurrency: number | null) =>
  concurrency === null ? "any number" : concurrency.toLocaleString("en");

function rateText(rate: LimitRate | null): string {
  if (rate === null) return "any number";
  const burst = rate.burst === 0 ? "" : `, burst ${rate.burst.toLocaleString("en")}`;
  return `${rate.limit.toLocaleString("en")} in ${durationText(rate.perMs)}${burst}`;
}

const countText = (count: number, isCapped: boolean) => `${count.toLocaleString("en")}${isCapped ? "+" : ""}`;

/** A value that is not limited needs no room in a table. */
const cellOf = (text: string, value: unknown, isOverridden: boolean): Cell =>
  value === null && !isOverridden ? "" : isOverridden ? { text, colour: "yellow" } : text;

export function drawLimits(limits: readonly LimitInfo[], out: Output): string[] {
  const rows = limits.map((limit): Cell[] => {
    const { concurrency, rate } = limit.inForce;
    return [
      limit.name,
      cellOf(concurrencyText(concurrency), concurrency, limit.override?.concurrency !== undefined),
      cellOf(rateText(rate), rate, limit.override?.rate !== undefined),
      countText(limit.inUse, limit.inUseCapped),
      limit.waiting === 0 ? "0" : { text: countText(limit.waiting, limit.waitingCapped), colour: "yellow" },
      limit.override === null ? "" : { text: shortOverrideText(limit, out.now()), colour: "yellow" },
    ];
  });
  const columns = [
    { title: "limit", whole: true },
    { title: "slots", whole: true },
    { title: "rate" },
    { title: "in use", align: "right", whole: true },
    { title: "waiting", align: "right", whole: true },
    { title: "override", spareFrom: 10 },
  ] as const;
  return table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal });
}

/** When it ends comes first, because a narrow terminal cuts the rest. */
function shortOverrideText({ override }: LimitInfo, now: number): string {
  if (override === null) return "";
  const end = override.until === null ? "until cleared" : `ends ${relativeTime(override.until, now)}`;
  const by = override.by === null ? "" : `, by ${override.by}`;
  return `${end}${by}${override.reason === null ? "" : `: ${override.reason}`}`;
}

function overrideText({ override }: LimitInfo, now: number): string | null {
  if (override === null) return null;
  const by = override.by === null ? "set" : `by ${override.by}`;
  const until =
    override.until === null ? "until it is cleared" : `until ${absoluteAndRelativeTime(override.until, now)}`;
  const why = override.reason === null ? "" : `: ${override.reason}`;
  return `${by} ${absoluteAndRelativeTime(override.at, now)}, ${until}${why}`;
}

export function drawLimit(limit: LimitDetails, out: Output): string[] {
  const { paint } = out;
  return [
    `${paint("bold", printable(limit.name))}${limit.override === null ? "" : `  ${paint("yellow", "overridden")}`}`,
    ...factsOf(limit, out.now()).flatMap(([name, text]) =>
      text === null ? [] : [`  ${paint("dim", name.padEnd(9))}  ${printable(text)}`],
    ),
    ...drawLanes(limit, out),
  ];
}

function factsOf(limit: LimitDetails, now: number): (readonly [string, string | null])[] {
  const { concurrency, rate, inForce, override } = limit;
  const withBase = (text: string, base: string, isOverridden: boolean) =>
    isOverridden ? `${text} (the code says ${base})` : text;
  const isListed = (inForceValue: unknown, isOverridden: boolean) => inForceValue !== null || isOverridden;
  const [hasSlots, hasRate] = [override?.concurrency !== undefined, override?.rate !== undefined];
  return [
    [
      "slots",
      isListed(inForce.concurrency, hasSlots)
        ? withBase(`${concurrencyText(inForce.concurrency)} for each key`, concurrencyText(concurrency), hasSlots)
        : null,
    ],
    ["rate", isListed(inForce.rate, hasRate) ? withBase(rateText(inForce.rate), rateText(rate), hasRate) : null],
    ["held", limit.while === "open" ? "from the first execution of a run to its end" : "while it is executed"],
    ["full", fullText(limit)],
    ["in use", countText(limit.inUse, limit.inUseCapped)],
    ["waiting", countText(limit.waiting, limit.waitingCapped)],
    ["override", overrideText(limit, now)],
    ["created", absoluteAndRelativeTime(limit.createdAt, now)],
  ];
}

const fullSentences = {
  wait: null,
  skip: "further runs are skipped",
  fail: "further runs fail",
  cancelOldest: "the oldest run is canceled for the new one",
} as const;

/** What becomes of runs that find no slot; null: they wait. */
function fullText({ onFull, backlog }: LimitDetails): string | null {
  const sentence = fullSentences[onFull];
  if (sentence === null) return null;
  return backlog === null || backlog === 0
    ? sentence
    : `${backlog.toLocaleString("en")} of a key may wait, then ${sentence}`;
}

const maxKeyLength = 60;
/** How many holders of a key have a line of their own; --json and --key show more. */
const maxHolders = 5;

function drawLanes({ lanes, inForce }: LimitDetails, out: Output): string[] {
  if (lanes.length === 0) return ["", "No slot is in use, and nothing waits."];
  const now = out.now();
  const shownHolders = lanes.length === 1 ? Number.POSITIVE_INFINITY : maxHolders;
  const rows = lanes.flatMap((lane) => {
    const [first, ...rest] = holderTexts(lane, shownHolders, now);
    const used =
      inForce.concurrency === null ? countText(lane.inUse, false) : `${lane.inUse} of ${inForce.concurrency}`;
    const head: Cell[] = [
      lane.key === "" ? { text: "(no key)", colour: "dim" } : truncate(lane.key, maxKeyLength),
      used,
      lane.waiting === 0 ? "0" : { text: countText(lane.waiting, lane.waitingCapped), colour: "yellow" },
      lane.nextAt === null ? "" : relativeTime(lane.nextAt, now),
      first ?? "",
    ];
    return [head, ...rest.map((text): Cell[] => ["", "", "", "", text])];
  });
  const columns = [
    { title: "key", whole: true },
    { title: "in use", align: "right", whole: true },
    { title: "waiting", align: "right", whole: true },
    { title: "next", whole: true },
    { title: "held by", whole: true },
  ] as const;
  return ["", ...table(columns, rows, { columns: out.columns, paint: out.paint, cutWhole: out.isTerminal })];
}

function holderTexts({ holders, inUse }: LaneInfo, shown: number, now: number): string[] {
  const texts = holders.slice(0, shown).map(({ runId, step, since }) => {
    const ofStep = step === null ? "" : `  step "${step}"`;
    return `${runId}${ofStep}  ${relativeTime(since, now)}`;
  });
  const hidden = inUse - texts.length;
  return hidden > 0 ? [...texts, `and ${hidden.toLocaleString("en")} more`] : texts;
}
