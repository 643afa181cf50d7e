// What the benchmark is asked to do.

import { parseArgs } from "node:util";

export const storeNames = ["postgres", "sqlite", "mysql", "memory"];
export const workloadIds = ["W1", "W2", "W3", "W4", "W5s", "W5c", "W6", "W7", "W8"];

/** @returns {{ stores: string[], workloads: string[], rounds: number, quick: boolean, json: string | undefined }} */
export function readArguments(args) {
  const { values } = parseArgs({
    args,
    options: {
      store: { type: "string", default: storeNames.join(",") },
      only: { type: "string", default: workloadIds.join(",") },
      rounds: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
    },
  });
  return {
    stores: chosen("store", values.store, storeNames),
    workloads: chosen("workload", values.only, workloadIds),
    rounds: readRounds(values.rounds) ?? (values.quick ? 1 : 3),
    quick: values.quick,
    json: values.json,
  };
}

/** undefined when it is not given. */
export function readRounds(given) {
  if (given === undefined) return undefined;
  const rounds = Number(given);
  if (!Number.isInteger(rounds) || rounds < 1) throw new Error("--rounds is a whole number above 0.");
  return rounds;
}

/** "w5" means both W5s and W5c; "mariadb" and "pg" are what people call them. */
export function chosen(what, list, all) {
  const aliases = { mariadb: "mysql", pg: "postgres" };
  return list.split(",").flatMap((given) => {
    const name = (aliases[given.toLowerCase()] ?? given).toLowerCase();
    const found = all.filter((one) => one.toLowerCase().startsWith(name));
    if (found.length === 0) throw new Error(`There is no ${what} "${given}": ${all.join(", ")}.`);
    return found;
  });
}
