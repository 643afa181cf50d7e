// What the growth benchmark is asked to do.

import { parseArgs } from "node:util";
import { chosen, readRounds } from "../arguments.mjs";

const storeNames = ["postgres", "sqlite", "mysql"];
const partIds = ["tables", "long", "map", "processes", "payloads"];

/**
 * `rounds` is undefined when every part may choose.
 * @returns {{ stores: string[], parts: string[], rounds: number | undefined, quick: boolean, json: string | undefined, plot: boolean }}
 */
export function readArguments(args) {
  const { values } = parseArgs({
    args,
    options: {
      store: { type: "string", default: storeNames.join(",") },
      only: { type: "string", default: partIds.join(",") },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      plot: { type: "boolean", default: false },
    },
  });
  return {
    stores: chosen("store", values.store, storeNames),
    parts: chosen("part", values.only, partIds),
    rounds: readRounds(values.rounds),
    quick: values.quick,
    json: values.json,
    plot: values.plot,
  };
}
