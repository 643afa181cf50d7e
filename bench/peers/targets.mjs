// Pawl's targets, relative to its peers and to the machine: each value is compared with others of the same round.

import { median } from "../statistics.mjs";

const times = (a, b) => (a === undefined || b === undefined ? undefined : a / b);

const targets = [
  {
    id: "W1",
    atLeast: 1,
    unit: "× graphile-worker",
    of: ({ pawl, peer }) => times(pawl("W1"), peer("graphile-worker", "W1")),
  },
  { id: "W1", atLeast: 20, unit: "× DBOS", of: ({ pawl, dbos }) => times(pawl("W1"), dbos("W1")) },
  { id: "W2", atLeast: 40, unit: "× DBOS", of: ({ pawl, dbos }) => times(pawl("W2"), dbos("W2")) },
  { id: "W2", atLeast: 10, unit: "× Restate", of: ({ pawl, peer }) => times(pawl("W2"), peer("restate", "W2")) },
  {
    id: "W2",
    atLeast: 0.5,
    unit: "× 100-row inserts",
    of: ({ pawl, limits }) => times(pawl("W2"), limits?.hundredRows),
  },
  {
    id: "W3",
    atMost: 1.3,
    unit: "× a one-row insert",
    of: ({ pawl, limits }) => times(pawl("W3"), 1000 / limits?.oneRow),
  },
  { id: "W4", atMost: 1.5, unit: "ms in one process", of: ({ pawl }) => pawl("W4") },
  { id: "W4", atMost: 4, unit: "ms across processes", of: ({ pawl }) => pawl("W4x") },
  { id: "W5s", atMost: 0.05, unit: "s", of: ({ pawl }) => pawl("W5s") },
  { id: "W5c", atMost: 0.15, unit: "s", of: ({ pawl }) => pawl("W5c") },
  {
    id: "W8",
    atLeast: 1,
    unit: "× DBOS, partitioned queue",
    of: ({ pawl, peer }) => times(pawl("W8"), peer("dbos-queue", "W8")),
  },
  { id: "W2", atMost: 0.03, unit: "statements per step", of: ({ cost }) => cost("W2", "statements") },
  { id: "W2", atMost: 400, unit: "bytes of WAL per further step", of: furtherStepBytes, least: true },
  { id: "W1", atMost: 1700, unit: "bytes of WAL per run", of: ({ cost }) => cost("W1", "logBytes"), least: true },
];

/** How much more a run of ten steps writes than a run of one step, for each of the nine additional steps. */
function furtherStepBytes({ cost }) {
  const [perStep, perRun] = [cost("W2", "logBytes"), cost("W1", "logBytes")];
  return perStep === undefined || perRun === undefined ? undefined : (10 * perStep - perRun) / 9;
}

/**
 * Every target that these rounds can decide, and whether it is met. For bytes the minimum counts, because other work
 * only adds.
 */
export function judge(rounds) {
  return targets.flatMap(({ of, least, ...target }) => {
    const values = rounds.map((round) => of(lookUp(round))).filter(Number.isFinite);
    if (values.length === 0) return [];
    const measured = least ? Math.min(...values) : median(values);
    const holds = target.atLeast === undefined ? measured <= target.atMost : measured >= target.atLeast;
    return [{ ...target, measured, values, holds }];
  });
}

function lookUp(round) {
  const peer = (name, id) => round.get(name)?.outcomes.get(id)?.value;
  return {
    peer,
    pawl: (id) => peer("pawl", id),
    /** DBOS counts with the faster of its two modes. */
    dbos: (id) => {
      const values = ["dbos-direct", "dbos-queue"].map((name) => peer(name, id)).filter(Number.isFinite);
      return values.length === 0 ? undefined : Math.max(...values);
    },
    /** The machine's limit, measured just before Pawl's turn. */
    limits: round.get("pawl")?.limits,
    cost: (id, name) => {
      const { cost, units } = round.get("pawl")?.outcomes.get(id) ?? {};
      return cost?.[name] === undefined ? undefined : cost[name] / units;
    },
  };
}
