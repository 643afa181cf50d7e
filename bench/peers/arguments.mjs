// What the comparison is asked to do.

import { parseArgs } from "node:util";
import { chosen, readRounds, workloadIds } from "../arguments.mjs";
import { contenders } from "./contenders.mjs";

const names = contenders.map(({ name }) => name);

/** @returns {{ names: string[], workloads: string[], rounds: number, quick: boolean, json: string | undefined }} */
export function readArguments(args) {
  const { values } = parseArgs({
    args,
    options: {
      contender: { type: "string", default: names.join(",") },
      only: { type: "string", default: workloadIds.join(",") },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
    },
  });
  return {
    names: chosen("contender", values.contender, names),
    workloads: chosen("workload", values.only, workloadIds),
    rounds: readRounds(values.rounds) ?? (values.quick ? 1 : 3),
    quick: values.quick,
    json: values.json,
  };
}
