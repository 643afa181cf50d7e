/** The days of a cron expression in plain language. */
import type { CronExpression } from "./cron.js";
import { type CronField, type CronItem, FIELD_KINDS, numbersOf } from "./cron-field.js";
import { commonStep, listed, ordinal, runs } from "./words.js";

const MONTHS = "January February March April May June July August September October November December".split(" ");
const DAYS = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split(" ");
const NTH = ["", "first", "second", "third", "fourth", "fifth"];

/** `every day`, `Monday to Friday`, `on the last day of the month`, `every Monday in January`. */
export function describeDays({ dayOfMonth, month, dayOfWeek }: CronExpression): string {
  const months = numbersOf(FIELD_KINDS[3], month);
  const monthNames = months.length === 12 ? null : listed(runs(months, (number) => MONTHS[number - 1] as string));
  const inMonths = monthNames === null ? "" : ` in ${monthNames}`;
  const ofMonths = ` of ${monthNames ?? "the month"}`;
  const hasDates = numbersOf(FIELD_KINDS[2], dayOfMonth).length < 31;
  const hasDaysOfWeek = numbersOf(FIELD_KINDS[4], dayOfWeek).length < 7;
  const matchesEither = !dayOfMonth.beginsWithStar && !dayOfWeek.beginsWithStar;

  if (matchesEither ? !hasDates || !hasDaysOfWeek : !hasDates && !hasDaysOfWeek) return `every day${inMonths}`;
  const dates = `on ${datesOf(dayOfMonth)}${ofMonths}`;
  if (!hasDaysOfWeek) return dates;
  const days = plainDays(dayOfWeek);
  const special = dayOfWeek.items.flatMap(specialDay);
  if (hasDates && !matchesEither) return `${dates}, but only if it is ${listed([...days, ...special], "or")}`;
  return listed([
    ...(hasDates ? [dates] : []),
    ...(days.length === 0
      ? []
      : [`${days.join().includes(" to ") && days.length === 1 ? "" : "every "}${listed(days)}${inMonths}`]),
    ...(special.length === 0 ? [] : [`on ${listed(special)}${ofMonths}`]),
  ]);
}

/** `day 1`, `days 1 and 15`, `every 2nd day from 1 to 31`, `the last day`. */
function datesOf(field: CronField): string {
  const dates = numbersOf(FIELD_KINDS[2], field);
  const step = commonStep(dates, 4) ?? 1;
  const list = listed(runs(dates));
  const plain =
    step > 1
      ? `every ${ordinal(step)} day from ${dates[0]} to ${dates.at(-1)}`
      : `${dates.length === 1 ? "day" : "days"} ${list}`;
  return listed([...(dates.length === 0 ? [] : [plain]), ...field.items.flatMap(specialDate)]);
}

function specialDate(item: CronItem): string[] {
  if (item.kind === "lastDay")
    return [item.daysBefore === 0 ? "the last day" : `the ${ordinal(item.daysBefore)} day before the last`];
  if (item.kind !== "nearestWorkday") return [];
  return [item.day === "last" ? "the last weekday" : `the weekday nearest to day ${item.day}`];
}

/** `Monday to Friday`; weeks begin on Monday. */
function plainDays(field: CronField): string[] {
  const days = numbersOf(FIELD_KINDS[4], field).map((day) => (day === 0 ? 7 : day));
  return runs(days.sort(), (day) => DAYS[day] as string);
}

function specialDay(item: CronItem): string[] {
  if (item.kind !== "nthDayOfWeek") return [];
  return [`the ${item.nth === "last" ? "last" : NTH[item.nth]} ${DAYS[item.dayOfWeek]}`];
}
