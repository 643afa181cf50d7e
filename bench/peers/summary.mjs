// From rounds to figures: medians, ratios of what was measured in the same round, costs per unit.

import { summary } from "../statistics.mjs";
import { workloads } from "./workloads.mjs";

/** W4 across two processes is a separate figure, which only Pawl has. */
export const figures = workloads.flatMap(({ id, figure, better }) =>
  id === "W4"
    ? [
        { id, figure, better },
        { id: "W4x", figure: "… in another process, p50 ms", better },
      ]
    : [{ id, figure, better }],
);

/** `rounds` are maps from a contender's name to its turn. */
export function summarise(contender, rounds) {
  const turns = rounds.flatMap((round) => round.get(contender.name) ?? []);
  return {
    name: contender.name,
    label: contender.label,
    version: contender.version,
    settings: turns.find(({ settings }) => settings)?.settings,
    failures: [...new Set(turns.flatMap(({ failure }) => failure ?? []))],
    figures: Object.fromEntries(
      figures.flatMap(({ id }) => {
        const values = turns.flatMap(({ outcomes }) => outcomes.get(id)?.value ?? []);
        return values.length === 0 ? [] : [[id, { ...summary(values), values }]];
      }),
    ),
    costs: workloads.flatMap(({ id, unit }) => costPerUnit(id, unit, turns)),
  };
}

/** The minimum of the rounds is used, because other work of the machine and the server only adds. */
function costPerUnit(id, unit, turns) {
  const perUnit = turns.flatMap(({ outcomes }) => {
    const { cost, units } = outcomes.get(id) ?? {};
    return cost === undefined ? [] : [Object.entries(cost).map(([name, value]) => [name, value / units])];
  });
  if (perUnit.length === 0) return [];
  const least = perUnit[0].map(([name], index) => [name, Math.min(...perUnit.map((round) => round[index][1]))]);
  return [{ id, unit, ...Object.fromEntries(least) }];
}

/** How many times as fast as the peer Pawl is, round by round; above 1 Pawl is faster. */
export function ratiosTo(peer, rounds) {
  return Object.fromEntries(
    figures.flatMap(({ id, better }) => {
      const values = rounds.flatMap((round) => {
        const [ours, theirs] = ["pawl", peer].map((name) => round.get(name)?.outcomes.get(id)?.value);
        if (ours === undefined || theirs === undefined) return [];
        return better === "more" ? ours / theirs : theirs / ours;
      });
      return values.length === 0 ? [] : [[id, { ...summary(values), values }]];
    }),
  );
}
