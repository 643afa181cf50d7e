/** What happens in a world, generated from its seed: processes, runs, commands, disasters. Each item has a name, by which it can be left out. */
import { Random } from "./kernel/random.js";
import { type Program, ProgramMaker, signalNames } from "./workload/program.js";

export interface NodePlan {
  readonly name: string;
  readonly hasWorker: boolean;
  readonly release: 1 | 2;
  readonly concurrency: number;
}

export interface RunPlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly workflow: "program" | "limited";
  readonly program: Program;
}

export interface SignalPlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly run: number;
  readonly name: string;
}

export type CommandName = "pause" | "resume" | "cancel" | "skip" | "force-cancel";

export interface CommandPlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly run: number;
  readonly command: CommandName;
}

export interface DisasterPlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly kind: "crash" | "freeze" | "clock-jump" | "stop";
  /** How long the process is away, or by how much its clock jumps. */
  readonly ms: number;
  /** The release that a process which comes back has. */
  readonly release: 1 | 2;
}

export interface WorldPlan {
  readonly nodes: readonly NodePlan[];
  readonly runs: readonly RunPlan[];
  readonly signals: readonly SignalPlan[];
  readonly commands: readonly CommandPlan[];
  readonly disasters: readonly DisasterPlan[];
  readonly hasCrossProcessHints: boolean;
  /** When the faults end. */
  readonly calmAt: number;
}

export function planWorld(seed: number): WorldPlan {
  const random = new Random(seed, "plan");
  const workers = random.int(1, 3);
  const canChangeCode = random.chance(0.25);
  const release = () => (canChangeCode && random.chance(0.5) ? 2 : 1);
  const nodes = [
    ...Array.from(
      { length: workers },
      (_, index): NodePlan => ({
        ...{ name: `w${index}`, hasWorker: true, release: release() },
        concurrency: random.pick([1, 3, 20]),
      }),
    ),
    ...Array.from(
      { length: random.int(1, 2) },
      (_, index): NodePlan => ({
        ...{ name: `c${index}`, hasWorker: false, release: 1, concurrency: 1 },
      }),
    ),
  ];
  const calmAt = random.int(8_000, 25_000);
  const anyNode = () => random.int(0, nodes.length - 1);
  const soon = () => Math.floor(random.next() ** 2 * calmAt);
  const runs = Array.from(
    { length: random.int(1, 4) },
    (_, index): RunPlan => ({
      ...{ item: `r${index}`, at: Math.floor(soon() / 2), node: anyNode() },
      workflow: random.chance(0.25) ? "limited" : "program",
      program: new ProgramMaker(random).make(),
    }),
  );
  const anyRun = () => random.int(0, runs.length - 1);
  const signals = Array.from(
    { length: random.int(0, 6) },
    (_, index): SignalPlan => ({
      ...{ item: `s${index}`, at: soon(), node: anyNode(), run: anyRun(), name: random.pick(signalNames) },
    }),
  );
  const commands: CommandPlan[] = [];
  for (let pairs = random.pick([0, 0, 1, 2, 3]); pairs > 0; pairs -= 1) {
    const at = soon();
    const run = anyRun();
    // Two operators, at about the same instant.
    for (const node of [anyNode(), anyNode()]) {
      const command = random.weighted({ pause: 4, resume: 4, skip: 2, cancel: 1, "force-cancel": 0.3 });
      commands.push({ item: `o${commands.length}`, at: at + random.int(0, 5), node, run, command });
    }
  }
  const disasters = Array.from({ length: random.pick([0, 1, 1, 2, 3, 4]) }, (_, index): DisasterPlan => {
    const kind = random.weighted({ crash: 4, freeze: 3, "clock-jump": 1, stop: 1 });
    const ms = kind === "clock-jump" ? random.int(-7_200_000, 7_200_000) : random.int(50, 9_000);
    return { item: `d${index}`, at: soon(), node: anyNode(), kind, ms, release: release() };
  });
  const hasCrossProcessHints = random.chance(0.7);
  return { nodes, runs, signals, commands, disasters, hasCrossProcessHints, calmAt };
}

/** The plan without the items that are named. */
export function planWithout(plan: WorldPlan, dropped: ReadonlySet<string>): WorldPlan {
  const left = <Item extends { readonly item: string }>(items: readonly Item[]) =>
    items.filter(({ item }) => !dropped.has(item));
  return {
    ...plan,
    signals: left(plan.signals),
    commands: left(plan.commands),
    disasters: left(plan.disasters),
    // The others refer to runs by their places.
    runs: plan.runs.map((run) => (dropped.has(run.item) ? { ...run, at: Number.POSITIVE_INFINITY } : run)),
  };
}
