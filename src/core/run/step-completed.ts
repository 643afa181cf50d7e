/**
 * The layout of the data of `step.completed`. Parts of this event are read without decoding it, because a log may have the
 * outputs of thousands of steps, and most readers need only a few facts about each.
 *
 *     {"undo":true,"hash":"…","by":"operator","ms":12,"output":…,"input":…}
 *
 * The facts (`undo`, `hash`, `by`, `ms`) come first, in this order, and each may be absent. The user values follow after
 * the facts, so that no text in a user value can be mistaken for a fact. Only this file writes, reads and changes the data.
 */
import { encode } from "../encoding/encode.js";
import type { EventData } from "./stored-schema.js";

type StepCompleted = EventData["step.completed"];
type StepFacts = Omit<StepCompleted, "output" | "input">;

/** @param encodedValues user values that are already encoded, by name; they take precedence over the values in `data` */
export function writeStepCompleted(data: StepCompleted, encodedValues: Readonly<Record<string, string>> = {}): string {
  return `{${append(factMembers(data), append(valueMember(data, encodedValues, "output"), valueMember(data, encodedValues, "input")))}}`;
}

/** Reads the facts, without the user values. Data that cannot be read has no facts. */
export function readStepFacts(data: string | null): StepFacts {
  return data === null ? {} : readHead(data).facts;
}

/** Whether the data contains an output. A step that has ended its run with `finish()` has no output. */
export const hasStepOutput = (data: string): boolean => outputStart(data) !== null;

/** The encoded output; null when the step has none. */
export function stepOutputText(data: string): string | null {
  const start = outputStart(data);
  return start === null ? null : data.slice(start, endOfValue(data, start));
}

/** Returns the data with this ancestry hash added or replaced. */
export function withStepHash(data: string, hash: string): string {
  const { facts, length } = readHead(data);
  return `{${append(factMembers({ ...facts, hash }), data.slice(length, -1))}}`;
}

function factMembers({ undo, hash, by, ms }: StepFacts): string {
  let text = "";
  if (undo !== undefined) text = '"undo":true';
  if (hash !== undefined) text = append(text, `"hash":"${hash}"`);
  if (by !== undefined) text = append(text, `"by":"${by}"`);
  return ms === undefined ? text : append(text, `"ms":${ms}`);
}

function valueMember(
  data: StepCompleted,
  encodedValues: Readonly<Record<string, string>>,
  name: "output" | "input",
): string {
  const text =
    encodedValues[name] ??
    (name in data ? encode(data[name], { label: name, limitBytes: Number.POSITIVE_INFINITY }) : null);
  return text === null ? "" : `"${name}":${text}`;
}

const append = (members: string, more: string) =>
  members === "" || more === "" ? members + more : `${members},${more}`;

/** Matches the opening brace and the facts, each with the comma or the closing brace that follows it. */
const headPattern =
  /^\{(?:"undo":(true)[,}])?(?:"hash":"([^"\\]*)"[,}])?(?:"by":"(operator)"[,}])?(?:"ms":(-?\d[\d.e+-]*)[,}])?/;

function readHead(data: string): { readonly facts: StepFacts; readonly length: number } {
  const match = headPattern.exec(data);
  if (match === null) return { facts: {}, length: data.length };
  const [head, undo, hash, by, ms] = match;
  const facts: { -readonly [Name in keyof StepFacts]: StepFacts[Name] } = {};
  if (undo !== undefined) facts.undo = true;
  if (hash !== undefined) facts.hash = hash;
  if (by !== undefined) facts.by = "operator";
  if (ms !== undefined) facts.ms = Number(ms);
  return { facts, length: head.length };
}

const outputName = '"output":';

function outputStart(data: string): number | null {
  const { length } = readHead(data);
  return data.startsWith(outputName, length) ? length + outputName.length : null;
}

/** The position of the comma or brace that follows the value at `start`. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') at = endOfString(text, at);
    else if (character === "{" || character === "[") depth += 1;
    else if (depth === 0 && (character === "," || character === "}")) return at;
    else if (character === "}" || character === "]") depth -= 1;
  }
  return text.length;
}

/** The position of the closing quote: the first that follows an even number of backslashes. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at >= 0; at = text.indexOf('"', at + 1)) {
    let backslashes = 0;
    while (text[at - 1 - backslashes] === "\\") backslashes += 1;
    if (backslashes % 2 === 0) return at;
  }
  return text.length;
}
