/** Cron expressions in plain language: `At 02:30 every day`, `Every 15 minutes from 09:00 to 17:45, Monday to Friday`. */
import { type CronExpression, cronExpression } from "./cron.js";
import { FIELD_KINDS, numbersOf } from "./cron-field.js";
import { describeDays } from "./describe-days.js";
import { clock, commonStep, counted, listed, runs } from "./words.js";

const MAX_LISTED_TIMES = 6;

export function describeCron(text: string): string {
  const cron = cronExpression(text);
  const times = describeTimes(cron);
  const days = describeDays(cron);
  if (days === "every day" && /every/i.test(times)) return times;
  const isSentence = times.startsWith("At ") && !/^[A-Z]/.test(days);
  return isSentence ? `${times} ${days}` : `${times}, ${days}`;
}

function describeTimes({ hour, minute }: CronExpression): string {
  const hours = numbersOf(FIELD_KINDS[1], hour);
  const minutes = numbersOf(FIELD_KINDS[0], minute);
  const hourStep = periodOf(hours, 24);
  const isFixed = !hour.hasStarOrStep || hourStep === null;
  if (isFixed && hours.length * minutes.length <= MAX_LISTED_TIMES)
    return `At ${listed(hours.flatMap((hourValue) => minutes.map((value) => clock(hourValue * 60 + value))))}`;
  return hourStep === null ? someHours(hours, minutes) : wholeDay(hourStep, hours, minutes);
}

/** @param hourStep the distance between the hours, which go round the clock */
function wholeDay(hourStep: number, [firstHour = 0]: readonly number[], minutes: readonly number[]): string {
  const minuteStep = periodOf(minutes, 60);
  const [minute = 0] = minutes;
  const past = minute === 0 ? "" : `, ${counted(minute, "minute")} past`;
  if (minutes.length === 1)
    return hourStep === 1 ? `Every hour${past}` : `Every ${hourStep} hours${from(firstHour * 60 + minute)}`;
  if (hourStep > 1) return `${minutesOf(minutes)} every ${counted(hourStep, "hour")}${from(firstHour * 60)}`;
  return minuteStep === null ? `${minutesOf(minutes)} every hour` : `${every(minuteStep)}${past}`;
}

function from(minutes: number): string {
  return minutes === 0 ? "" : ` from ${clock(minutes)}`;
}

function someHours(hours: readonly number[], minutes: readonly number[]): string {
  const step = commonStep(hours, 2);
  const minuteStep = periodOf(minutes, 60);
  const [first, last] = [hours[0] as number, hours.at(-1) as number];
  const range = `from ${clock(first * 60 + (minutes[0] as number))} to ${clock(last * 60 + (minutes.at(-1) as number))}`;
  if (minutes.length === 1 && step !== null) return `Every ${step === 1 ? "hour" : `${step} hours`} ${range}`;
  if (minuteStep !== null && (step === 1 || hours.length === 1)) return `${every(minuteStep)} ${range}`;
  const minuteList = minuteStep === null ? minutesOf(minutes) : `${every(minuteStep)} of`;
  return `${minuteList} the ${hours.length === 1 ? "hour" : "hours"} ${listed(runs(hours))}`;
}

/** `At 5 and 35 minutes past`. */
function minutesOf(minutes: readonly number[]): string {
  return `At ${listed(runs(minutes))} minutes past`;
}

function every(minutes: number): string {
  return minutes === 1 ? "Every minute" : `Every ${minutes} minutes`;
}

/** The distance between the numbers if they go round a circle of `length` evenly, as all minutes of an hour; otherwise null. */
function periodOf(values: readonly number[], length: number): number | null {
  const step = commonStep(values, 2);
  return step !== null && step * values.length === length ? step : null;
}
