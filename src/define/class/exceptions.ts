/** Exception policies of classes: the most specific rule that matches an error decides what happens to the step or run. */

import { InvalidInputError, PauseError, PermanentError } from "../../core/errors/errors.js";
import { checkOptions } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { nextDelayMs, type RetryPolicy } from "../../core/naming/retry-policy.js";
import { requireSyncResult } from "../../core/naming/sync-result.js";
import { isNotRetryable, isTransientError } from "../retry-reaction.js";
import type { Reaction } from "../step-engine.js";

/**
 * What follows an exception in a step of a class: "pause" the run until an operator resumes it, "cancel" the run,
 * "reattempt" the step, "skip" the step, or "fail" the run.
 */
export type ExceptionAction = "pause" | "cancel" | "reattempt" | "skip" | "fail";
/** What follows an exception when the reattempts are used up. */
export type TerminalAction = Exclude<ExceptionAction, "reattempt">;

type ErrorClass = abstract new (...args: any[]) => Error;

/** A rule of `onException`, which applies to some errors or to all. */
export interface ExceptionRule {
  /** The errors that the rule applies to: an error class, a list of them, or a function that returns true. Default: all. */
  readonly on?: ErrorClass | readonly ErrorClass[] | ((error: any) => boolean);
  /** What follows such an error. */
  readonly action: ExceptionAction;
  /** The delay before a reattempt. Default: the backoff of `retry`. */
  readonly wait?: Duration;
  /** How many reattempts in a row there are at most. Default: `maxReattempts` of the step, the class, or 100. */
  readonly maxReattempts?: number;
  /** What follows when the reattempts are used up. Default: `terminalAction` of the step, the class, or "pause". */
  readonly terminalAction?: TerminalAction;
}

/** A function that decides about an error. If it returns undefined, the next part of the policy decides. */
export type ExceptionDecider = (
  error: any,
  history: {
    /** How many reattempts in a row there were. */
    readonly reattempts: number;
  },
) => ExceptionAction | ExceptionRule | undefined;

/** One part of an exception policy. */
type PolicyPart = ExceptionAction | ExceptionRule | ExceptionDecider;
/** The option `onException`: an action, a rule, a function, or a list of these. */
export type ExceptionPolicy = PolicyPart | readonly PolicyPart[];

const actions: readonly ExceptionAction[] = ["pause", "cancel", "reattempt", "skip", "fail"];

export function checkActions(value: unknown, what: string, allowed: readonly string[] = actions): void {
  if (typeof value === "string" && allowed.includes(value)) return;
  const list = allowed.map((action) => `"${action}"`).join(", ");
  throw new InvalidInputError(
    `The ${what} must be one of ${list}, not ${typeof value === "string" ? `"${value}"` : typeof value}.`,
  );
}

export function checkPolicy(policy: unknown, what: string): void {
  for (const part of Array.isArray(policy) ? policy : [policy]) {
    if (typeof part === "function") continue;
    if (typeof part === "object" && part !== null) checkRule(part as ExceptionRule, what);
    else checkActions(part, what);
  }
}

const ruleOptions = new Set<string>([
  "on",
  "action",
  "wait",
  "maxReattempts",
  "terminalAction",
] satisfies (keyof ExceptionRule)[]);

function checkRule(rule: ExceptionRule, what: string): void {
  checkOptions(`A rule in the ${what}`, rule, ruleOptions);
  checkActions(rule.action, `action in the ${what}`);
  const { maxReattempts = 0 } = rule;
  if (!(maxReattempts >= 0 && (Number.isInteger(maxReattempts) || maxReattempts === Number.POSITIVE_INFINITY)))
    throw new InvalidInputError(`maxReattempts in the ${what} must be a whole number, not ${String(maxReattempts)}.`);
  if (rule.wait !== undefined) parseDuration(rule.wait, `wait in the ${what}`);
  if (rule.terminalAction !== undefined)
    checkActions(rule.terminalAction, `terminalAction in the ${what}`, ["pause", "cancel", "skip", "fail"]);
  if (!("on" in rule) || rule.on === undefined) return;
  const classes = Array.isArray(rule.on) ? rule.on : [];
  for (const matcher of Array.isArray(rule.on) ? rule.on : [rule.on]) {
    if (typeof matcher !== "function" || (classes.length > 0 && !isErrorClass(matcher)))
      throw new InvalidInputError(`"on" in the ${what} must be an error class, several, or a function.`);
  }
}

/** Refuses a function or a list as the result of a function in `onException`, which must decide about one error. */
function checkDecision(decision: unknown): void {
  if (typeof decision === "function" || Array.isArray(decision))
    throw new InvalidInputError("A function in onException must return an action or a rule, not a function or a list.");
  checkPolicy(decision, "result of onException");
}

/** The exception options of one level: a step, or a class. */
export interface PolicyLevel {
  readonly onException?: ExceptionPolicy;
  readonly maxReattempts?: number;
  readonly terminalAction?: TerminalAction;
}

const defaultMaxReattempts = 100;

/**
 * @param levels the options of the step, of its class and of the parent classes, in this order
 * @param random a number from 0 up to, but not including, 1, for the jitter
 */
export function reactTo(
  error: unknown,
  levels: readonly PolicyLevel[],
  backoff: RetryPolicy,
  history: { readonly reattempts: number; readonly postponed: number },
  random: number,
): Reaction {
  const specificRule = firstDefined(levels, (level) => mostSpecificRule(error, partsOf(level)));
  if (specificRule === undefined) {
    // The classes of these errors decide what happens, unless a rule with `on` matches the error.
    if (error instanceof PauseError) return { kind: "pause" };
    if (error instanceof PermanentError) return { kind: "fail" };
    if (isTransientError(error))
      return {
        kind: "reattempt",
        waitMs: nextDelayMs(backoff, history.reattempts + history.postponed + 1, random, error),
        countsAsReattempt: false,
      };
  }
  const rule = specificRule ??
    firstDefined(levels, (level) => generalRule(error, partsOf(level), history)) ?? { action: "pause" };
  if (rule.action !== "reattempt") return { kind: rule.action };
  const limit = rule.maxReattempts ?? firstDefined(levels, (level) => level.maxReattempts) ?? defaultMaxReattempts;
  if (history.reattempts >= limit || isNotRetryable(error))
    return { kind: rule.terminalAction ?? firstDefined(levels, (level) => level.terminalAction) ?? "pause" };
  const waitMs =
    rule.wait === undefined
      ? nextDelayMs(backoff, history.reattempts + 1, random, error)
      : parseDuration(rule.wait, "wait of onException");
  return { kind: "reattempt", waitMs, countsAsReattempt: true };
}

function firstDefined<T>(levels: readonly PolicyLevel[], select: (level: PolicyLevel) => T | undefined): T | undefined {
  for (const level of levels) {
    const value = select(level);
    if (value !== undefined) return value;
  }
  return undefined;
}

function partsOf({ onException }: PolicyLevel): readonly PolicyPart[] {
  if (onException === undefined) return [];
  return Array.isArray(onException) ? onException : [onException as PolicyPart];
}

/** A rule with a matching function wins over rules with classes; of several classes, the nearest to the error's class wins. */
function mostSpecificRule(error: unknown, parts: readonly PolicyPart[]): ExceptionRule | undefined {
  let bestRule: ExceptionRule | undefined;
  let bestDistance = Number.POSITIVE_INFINITY;
  for (const part of parts) {
    if (typeof part !== "object" || part.on === undefined) continue;
    const distance = distanceTo(error, part.on);
    if (distance >= bestDistance) continue;
    bestRule = part;
    bestDistance = distance;
  }
  return bestRule;
}

function distanceTo(error: unknown, on: NonNullable<ExceptionRule["on"]>): number {
  if (typeof on === "function" && !isErrorClass(on))
    return requireSyncResult('"on" of onException', (on as (error: unknown) => boolean)(error)) ? 0 : Infinity;
  let distance = Number.POSITIVE_INFINITY;
  for (const errorClass of Array.isArray(on) ? (on as readonly ErrorClass[]) : [on as ErrorClass]) {
    if (!(error instanceof errorClass)) continue;
    let classDistance = 1;
    for (
      let type = error.constructor;
      type !== errorClass && typeof type === "function";
      type = Object.getPrototypeOf(type)
    )
      classDistance += 1;
    distance = Math.min(distance, classDistance);
  }
  return distance;
}

const isErrorClass = (value: unknown) =>
  typeof value === "function" && (value === Error || value.prototype instanceof Error);

function generalRule(
  error: unknown,
  parts: readonly PolicyPart[],
  history: { readonly reattempts: number },
): ExceptionRule | undefined {
  for (const part of parts) {
    if (typeof part === "object" && part.on !== undefined) continue;
    const decision = typeof part === "function" ? requireSyncResult("onException", part(error, history)) : part;
    if (decision === undefined) continue;
    if (typeof part === "function") checkDecision(decision);
    return typeof decision === "string" ? { action: decision } : decision;
  }
  return undefined;
}
