/** What clients start, at random: all styles, with inputs that fail, wait and branch, now and later. */
import type { Pawl, RunHandle } from "pawl";

export interface Start {
  readonly workflow: string;
  send(pawl: Pawl, key: string): Promise<RunHandle<any, any>>;
}

type Random = () => number;

const pick = <One>(random: Random, all: readonly One[]): One => all[Math.floor(random() * all.length)] as One;
const times = <One>(count: number, make: (index: number) => One): One[] =>
  Array.from({ length: count }, (_, n) => make(n));

/** How often each workflow is started, and with which input. */
const kinds: readonly (readonly [workflow: string, weight: number, input: (random: Random) => unknown])[] = [
  [
    "steps",
    4,
    (r) => ({ plan: times(1 + Math.floor(r() * 5), () => pick(r, ["ok", "ok", "throws", "transient", "slow"])) }),
  ],
  ["sleeper", 2, (r) => ({ ms: Math.floor(50 + r() * 1_500) })],
  ["listener", 4, (r) => ({ count: 1 + Math.floor(r() * 3) })],
  ["chooser", 2, () => null],
  [
    "family",
    2,
    (r) => ({ items: times(Math.floor(r() * 5), () => ({ fails: r() < 0.2, ms: Math.floor(r() * 300) })) }),
  ],
  ["careful", 2, () => null],
  ["patient", 2, (r) => ({ passable: r() < 0.5 })],
  ["trip", 2, (r) => ({ fails: r() < 0.6 })],
  ["booker", 6, (r) => ({ modes: times(1 + Math.floor(r() * 3), () => pick(r, modes)), flip: r() < 0.5 })],
  ["Sweep", 2, (r) => ({ items: Math.floor(r() * 40) })],
  ["Assembly", 3, (r) => ({ n: Math.floor(r() * 10), ms: 600 })],
  ["order", 3, (r) => ({ large: r() < 0.5, fails: r() < 0.4 })],
  ["batch", 2, (r) => ({ nodes: 1 + Math.floor(r() * 6), throws: r() < 0.3 })],
];
const modes = ["plain", "plain", "plain", "late", "contended", "contended", "caught"] as const;
const totalWeight = kinds.reduce((sum, [, weight]) => sum + weight, 0);

export function chooseStart(random: Random): Start {
  let at = random() * totalWeight;
  const [workflow, , inputOf] = kinds.find(([, weight]) => (at -= weight) < 0) as (typeof kinds)[number];
  const input = inputOf(random);
  // A delayed run can receive commands before it has started.
  const later = random() < 0.4 ? { delay: Math.floor(200 + random() * 1_800) } : {};
  if (workflow === "batch") return { workflow, send: (pawl, key) => buildBatch(pawl, key, input as BatchInput, later) };
  const send: Start["send"] = (pawl, key) => {
    const hero = workflow === "Sweep" ? { hero: { type: "Account", id: key } } : {};
    return pawl.workflow<any, any>(workflow).trigger(input, { idempotencyKey: key, ...hero, ...later });
  };
  return { workflow, send };
}

interface BatchInput {
  readonly nodes: number;
  readonly throws: boolean;
}

function buildBatch(pawl: Pawl, key: string, { nodes, throws }: BatchInput, later: { delay?: number }) {
  return pawl.build(
    "batch",
    (g) => {
      const parts = g.fanOut(
        times(nodes, (n) => n),
        {
          name: (n) => `part_${n}`,
          job: "Press",
          args: (n: number) => ({ n, throws: throws && n === 0 }),
        },
      );
      g.node("last", { job: "Paint", args: { n: nodes }, dependsOn: parts });
    },
    { idempotencyKey: key, concurrency: 3, ...later },
  );
}

/** The signals that a client sends to a run that it has started. */
export function signalNames(workflow: string, random: Random): string[] {
  if (workflow === "listener") return times(Math.floor(random() * 4), () => "go");
  if (workflow === "chooser") return ["yes", "paid", "b", "a"].filter(() => random() < 0.6);
  return workflow === "patient" && random() < 0.5 ? ["looked"] : [];
}
