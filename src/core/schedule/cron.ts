/** Cron expressions: five fields, as in crontab(5), with the additions of Quartz that name days of a month (L, W, #). */
import { InvalidInputError } from "../errors/errors.js";
import { LruMap } from "../lru-map.js";
import { didYouMean } from "../naming/nearest-word.js";
import { type CronField, type CronPlace, FIELD_KINDS, type FieldKind, numbersOf, parseField } from "./cron-field.js";
import { DayTimes } from "./day-times.js";
import { MatchingDays } from "./matching-days.js";

const MACROS: ReadonlyMap<string, string> = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);
const MAX_LENGTH = 200;

export interface CronExpression {
  readonly minute: CronField;
  readonly hour: CronField;
  readonly dayOfMonth: CronField;
  readonly month: CronField;
  readonly dayOfWeek: CronField;
  /** The days that match. */
  readonly days: MatchingDays;
  readonly times: DayTimes;
  /**
   * The hours are fixed (no `*` and no step), so the expression means times on the clock, which the changes of an offset neither
   * drop nor double. Other expressions mean every real minute whose local time matches.
   */
  readonly isWallClock: boolean;
}

/** Expressions of stored rules, which are parsed for each instant. One takes about 5 KB. */
const recentExpressions = new LruMap<CronExpression>(200);

/** A stored expression. */
export function cronExpression(cron: string): CronExpression {
  let expression = recentExpressions.get(cron);
  if (expression === undefined) recentExpressions.set(cron, (expression = parseCron(cron, "The schedule")));
  return expression;
}

/**
 * @param subject the beginning of the error's sentence, such as `Schedule "nightly_report"`
 * @throws InvalidInputError
 */
export function parseCron(cron: string, subject: string): CronExpression {
  const place: CronPlace = { subject, cron };
  const [minute, hour, dayOfMonth, month, dayOfWeek] = splitFields(place).map((text, index) =>
    parseField(FIELD_KINDS[index] as FieldKind, text, place),
  ) as [CronField, CronField, CronField, CronField, CronField];
  const days = new MatchingDays(dayOfMonth, month, dayOfWeek);
  if (!days.exist())
    throw new InvalidInputError(`${subject} never fires: no month has the days of ${JSON.stringify(cron)}.`);
  const times = DayTimes.of(numbersOf(FIELD_KINDS[1], hour), numbersOf(FIELD_KINDS[0], minute));
  return { minute, hour, dayOfMonth, month, dayOfWeek, days, times, isWallClock: !hour.hasStarOrStep };
}

function splitFields({ subject, cron }: CronPlace): string[] {
  if (cron.length > MAX_LENGTH)
    throw new InvalidInputError(
      `${subject} has a cron expression of ${cron.length} characters; the most is ${MAX_LENGTH}.`,
    );
  const fields = cron.trim().split(/\s+/);
  const [first = ""] = fields;
  if (fields.length === 1 && first.startsWith("@")) return meaningOf(first, subject).split(" ");
  if (fields.length === 5) return fields;

  const count = first === "" ? "no fields" : fields.length === 1 ? "1 field" : `${fields.length} fields`;
  const five = "which takes five: minute, hour, day-of-month, month and day-of-week";
  const hint =
    fields.length === 6 ? '; there is none for seconds, so write every: "30s" for periods below a minute' : "";
  throw new InvalidInputError(
    `${subject} has ${count} in the cron expression ${JSON.stringify(cron)}, ${five}${hint}.`,
  );
}

/** The five fields that a name such as `@daily` stands for. */
function meaningOf(name: string, subject: string): string {
  const meaning = MACROS.get(name.toLowerCase());
  if (meaning !== undefined) return meaning;
  const names = [...MACROS.keys()];
  const suggestion = didYouMean(name.toLowerCase(), names);
  const next = suggestion === "" ? "; write" : `${suggestion} Write`;
  throw new InvalidInputError(
    `${subject} has the unknown name ${JSON.stringify(name)}${next} one of ${names.join(", ")}, or five fields.`,
  );
}
