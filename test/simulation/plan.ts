/** What happens in a world, generated from its seed: processes, runs, commands, disasters. Each item has a name, by which it can be left out. */
import { Random } from "./kernel/random.js";
import type { BodyPlan } from "./workload/bench.js";
import type { ClassInput } from "./workload/class-workflows.js";
import type { GraphInput } from "./workload/graph-workflows.js";
import { type Program, ProgramMaker, signalNames } from "./workload/program.js";

export interface NodePlan {
  readonly name: string;
  readonly hasWorker: boolean;
  readonly release: 1 | 2;
  readonly concurrency: number;
}

export type RunPlan = { readonly item: string; readonly at: number; readonly node: number } & (
  | { readonly workflow: "program" | "limited"; readonly program: Program }
  | { readonly workflow: "sweep" | "assembly"; readonly input: ClassInput }
  | { readonly workflow: "order"; readonly input: GraphInput }
  | { readonly workflow: "built"; readonly body: BodyPlan; readonly width: number }
);

export interface SchedulePlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly everyMs: number;
  readonly overlap: "skip" | "bufferOne" | "bufferAll" | "allowAll";
  readonly catchUp: "latest" | "all";
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
  readonly schedules: readonly SchedulePlan[];
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
  const runs = Array.from({ length: random.int(1, 4) }, (_, index): RunPlan => {
    const placed = { item: `r${index}`, at: Math.floor(soon() / 2), node: anyNode() };
    return { ...placed, ...planRun(random) };
  });
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
  const schedules = Array.from(
    { length: random.chance(0.2) ? 1 : 0 },
    (_, index): SchedulePlan => ({
      ...{
        item: `p${index}`,
        at: Math.floor(soon() / 2),
        node: anyNode(),
        everyMs: random.pick([1_000, 2_000, 3_000]),
      },
      overlap: random.pick(["skip", "bufferOne", "bufferAll", "allowAll"]),
      catchUp: random.pick(["latest", "all"]),
      program: [{ op: "step", name: "s1", ms: random.int(10, 2_500) }],
    }),
  );
  const hasCrossProcessHints = random.chance(0.7);
  return { nodes, runs, signals, commands, schedules, disasters, hasCrossProcessHints, calmAt };
}

function planRun(random: Random) {
  const body = (): BodyPlan => ({
    ms: random.int(1, 120),
    ...(random.chance(0.3) ? { fails: random.int(1, 2) } : {}),
    ...(random.chance(0.04) ? { kills: random.pick([1, 2, 20]) } : {}),
  });
  const workflow = random.weighted({ program: 8, limited: 3, sweep: 2, assembly: 1.5, order: 2, built: 1.5 });
  switch (workflow) {
    case "program":
    case "limited":
      return { workflow, program: new ProgramMaker(random).make() } as const;
    case "sweep":
    case "assembly":
      return { workflow, input: { items: random.int(0, 20), body: body(), skips: random.chance(0.5) } } as const;
    case "order":
      return { workflow, input: { body: body(), isLarge: random.chance(0.5), fails: random.chance(0.3) } } as const;
    case "built":
      return { workflow, body: body(), width: random.int(1, 4) } as const;
  }
}

/** The plan without the items that are named. */
export function planWithout(plan: WorldPlan, dropped: ReadonlySet<string>): WorldPlan {
  const left = <Item extends { readonly item: string }>(items: readonly Item[]) =>
    items.filter(({ item }) => !dropped.has(item));
  return {
    ...plan,
    signals: left(plan.signals),
    schedules: left(plan.schedules),
    commands: left(plan.commands),
    disasters: left(plan.disasters),
    // The others refer to runs by their places.
    runs: plan.runs.map((run) => (dropped.has(run.item) ? { ...run, at: Number.POSITIVE_INFINITY } : run)),
  };
}
