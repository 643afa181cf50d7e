/** Who starts runs with limits, and who commands them: both at random, and at the same time. */
import type { Pawl } from "pawl";

type Random = () => number;

const tenants = ["a1", "b1", "c2", "d2", "e3", "f3", "g4", "h4"];
/** The first tenant has as many runs as all others. */
const tenantOf = (random: Random) => tenants[random() < 0.5 ? 0 : Math.floor(random() * tenants.length)] as string;

const kinds: readonly (readonly [workflow: string, weight: number, input: (random: Random) => object])[] = [
  ["plain", 4, () => ({})],
  ["fair", 4, () => ({})],
  ["turns", 2, () => ({})],
  ["triple", 3, () => ({})],
  ["sleeper", 2, (r) => ({ ms: Math.floor(r() * 400) })],
  ["listener", 3, () => ({})],
  ["flaky", 2, (r) => ({ failures: Math.floor(r() * 4) })],
  ["pauser", 2, () => ({})],
  ["parent", 3, (r) => ({ children: Math.floor(r() * 4) })],
  ["order", 2, () => ({})],
  ["Sweep", 2, () => ({})],
  ["paced", 3, () => ({})],
  ["pacedApi", 3, () => ({})],
  ["customer", 2, (r) => ({ ms: Math.floor(r() * 200) })],
  ["caller", 3, (r) => ({ units: 1 + Math.floor(r() * 8) })],
  ["limitedCaller", 2, () => ({})],
  ["free", 1, () => ({})],
];
const totalWeight = kinds.reduce((sum, [, weight]) => sum + weight, 0);

/** Starts a few runs of one kind together. Returns their ids. */
export async function startSome(pawl: Pawl, random: Random): Promise<readonly string[]> {
  let at = random() * totalWeight;
  const [workflow, , inputOf] = kinds.find(([, weight]) => (at -= weight) < 0) as (typeof kinds)[number];
  const inputs = Array.from({ length: 1 + Math.floor(random() * 5) }, () => ({
    tenant: tenantOf(random),
    ...inputOf(random),
  }));
  const priority = random() < 0.2 ? { priority: 3 } : {};
  const delay = random() < 0.2 ? { delay: Math.floor(random() * 1_000) } : {};
  const handles = await Promise.all(
    inputs.map((input) => pawl.workflow<any, any>(workflow).trigger(input, { ...priority, ...delay })),
  );
  return handles.map(({ id }) => id);
}

/** A command to one run. Some are refused, because the run is not in the state for it. */
export async function commandOne(pawl: Pawl, id: string, random: Random): Promise<void> {
  const run = pawl.run(id);
  const commands = [
    () => run.cancel("an operator"),
    () => run.pause("an operator"),
    () => run.pause("an operator").then(() => run.resume()),
    () => run.resume(),
    () => run.resume(),
    () => run.skip(),
    () => run.signal("go", null),
    () => run.signal("go", null),
  ];
  await commands[Math.floor(random() * commands.length)]?.().catch(() => {});
}
