// What the benchmark is asked to do.

import { parseArgs } from "node:util";
import { readRounds } from "../arguments.mjs";

/** Of every 111 runs a hundred have ended. */
const millionEnded = 1_110_000;

/** @returns {{ runs: number, rounds: number, json: string | undefined }} */
export function readArguments(args) {
  const { values } = parseArgs({
    args,
    options: { runs: { type: "string" }, rounds: { type: "string" }, json: { type: "string" } },
  });
  const runs = Number(values.runs ?? millionEnded);
  if (!Number.isInteger(runs) || runs < 1_110) throw new Error("--runs is a whole number, at least 1110.");
  return { runs, rounds: readRounds(values.rounds) ?? 5, json: values.json };
}
