/** What happens in a world, generated from its seed: processes, runs, commands, disasters. Each item has a name, by which it can be left out. */

import { type LimitName, limitNames, limitsOfWorkflows } from "./checks/limit-plan.js";
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
  | ProgramRunPlan
  | { readonly workflow: "sweep" | "assembly"; readonly input: ClassInput }
  | { readonly workflow: "order"; readonly input: GraphInput }
  | { readonly workflow: "built"; readonly body: BodyPlan; readonly width: number }
);

export interface ProgramRunPlan {
  readonly workflow: "program" | "limited" | "keyed" | "paced" | "held";
  readonly program: Program;
  readonly tenant: string;
  /** The idempotency key that it shares with others, and what becomes of it if another run has that. */
  readonly conflict?: { readonly group: string; readonly policy: "queue" | "cancelOther" | "replace" | "fail" };
  /** Within how many milliseconds it must begin. */
  readonly startByMs?: number;
}

/** A start that a run may gather with others. */
export interface GatherPlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly workflow: "notes" | "lists" | "mail";
  readonly key: string;
  readonly keep: "last" | "first" | "all";
  readonly quietMs: number;
  readonly maxMs: number;
  /** Whether an element of a batch has an idempotency key, so that it may be started again. */
  readonly hasKey: boolean;
}

export interface OverridePlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly limit: LimitName;
  /** null: what was set before is cleared. */
  readonly values: { readonly concurrency: number; readonly ratePerSecond?: number; readonly ms?: number } | null;
}

export interface QueuePausePlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly queue: string;
  readonly ms: number;
}

export interface SchedulePlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly everyMs: number;
  readonly overlap: "skip" | "bufferOne" | "bufferAll" | "allowAll" | "cancelOther";
  readonly catchUp: "latest" | "all";
  readonly program: Program;
  /** What operators do to it, two of them at about the same instant. */
  readonly commands: readonly {
    readonly at: number;
    readonly node: number;
    readonly command: "pause" | "resume" | "trigger" | "force-trigger";
  }[];
}

export interface SignalPlan {
  readonly item: string;
  readonly at: number;
  readonly node: number;
  readonly run: number;
  readonly name: string;
}

export type CommandName =
  | "pause"
  | "resume"
  | "resume-with-output"
  | "resume-at"
  | "reattempt"
  | "retry"
  | "cancel"
  | "skip"
  | "force-cancel";

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
  readonly gathers: readonly GatherPlan[];
  readonly overrides: readonly OverridePlan[];
  readonly queuePauses: readonly QueuePausePlan[];
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
  const place = () => ({ at: Math.floor(soon() / 2), node: anyNode() });
  if (random.chance(0.25)) runs.push(...planCrowd(random, runs.length, place));
  if (random.chance(0.15)) runs.push(...planConflicts(random, runs.length, place));
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
      const command = random.weighted({
        ...{ pause: 4, resume: 4, skip: 2, cancel: 1, "force-cancel": 0.3 },
        ...{ "resume-with-output": 0.5, "resume-at": 0.5, reattempt: 0.5, retry: 1 },
      });
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
      overlap: random.pick(["skip", "bufferOne", "bufferAll", "allowAll", "cancelOther"]),
      catchUp: random.pick(["latest", "all"]),
      program: [{ op: "step", name: "s1", ms: random.int(10, 2_500) }],
      commands: planPairs(random, [0, 0, 1, 2], (at) => ({
        ...{ at: at + soon(), node: anyNode() },
        command: random.weighted({ pause: 2, resume: 3, trigger: 2, "force-trigger": 1 }),
      })),
    }),
  );
  const gathers = random.chance(0.25) ? planGathers(random, anyNode, soon) : [];
  const isLimited = runs.some(({ workflow }) => workflow in limitsOfWorkflows) || gathers.length > 0;
  const overrides = isLimited && random.chance(0.4) ? planOverrides(random, anyNode, soon) : [];
  const queuePauses = random.chance(0.08)
    ? [{ item: "q0", at: soon(), node: anyNode(), queue: random.pick(pausableQueues), ms: random.int(500, 6_000) }]
    : [];
  const hasCrossProcessHints = random.chance(0.7);
  return {
    ...{ nodes, runs, signals, commands, schedules, gathers, overrides, queuePauses, disasters },
    ...{ hasCrossProcessHints, calmAt },
  };
}

const pausableQueues = ["program", "limited", "order", "Sweep", "mail"] as const;
const tenants = ["a", "b", "c"] as const;

/** Two of each, at about the same instant. */
function planPairs<Planned>(random: Random, counts: readonly number[], plan: (at: number) => Planned): Planned[] {
  const planned: Planned[] = [];
  for (let pairs = random.pick(counts); pairs > 0; pairs -= 1)
    planned.push(plan(random.int(0, 5)), plan(random.int(0, 5)));
  return planned;
}

type Placed = () => { readonly at: number; readonly node: number };

/** Many short runs that compete for few slots, some of which must begin soon. */
function planCrowd(random: Random, first: number, place: Placed): RunPlan[] {
  const { at } = place();
  const workflow = random.pick(["limited", "keyed", "paced", "held"] as const);
  return Array.from({ length: random.int(3, 7) }, (_, index): RunPlan => {
    const program = new ProgramMaker(random).make(random.int(1, 2), 1);
    return {
      ...{ item: `r${first + index}`, at: at + random.int(0, 1_500), node: place().node },
      ...{ workflow, program, tenant: random.pick(tenants) },
      ...(random.chance(0.3) ? { startByMs: random.int(200, 4_000) } : {}),
    };
  });
}

/** Starts that share an idempotency key. */
function planConflicts(random: Random, first: number, place: Placed): RunPlan[] {
  const { at } = place();
  const workflow = random.pick(["program", "program", "limited"] as const);
  return Array.from(
    { length: random.int(2, 5) },
    (_, index): RunPlan => ({
      ...{ item: `r${first + index}`, at: at + random.int(0, 4_000), node: place().node },
      ...{ workflow, program: new ProgramMaker(random).make(random.int(1, 2), 1), tenant: random.pick(tenants) },
      conflict: { group: "k0", policy: random.weighted({ queue: 3, cancelOther: 2, replace: 2, fail: 1 }) },
    }),
  );
}

function planGathers(random: Random, anyNode: () => number, soon: () => number): GatherPlan[] {
  const at = Math.floor(soon() / 2);
  const workflow = random.pick(["notes", "lists", "mail"] as const);
  const keep = workflow === "lists" ? "all" : random.pick(["last", "first"] as const);
  const quietMs = random.int(100, 1_500);
  const spreadMs = random.pick([50, 1_000, 6_000]);
  return Array.from(
    { length: random.int(2, 9) },
    (_, index): GatherPlan => ({
      ...{ item: `g${index}`, at: at + random.int(0, spreadMs), node: anyNode(), workflow, keep, quietMs },
      ...{
        maxMs: quietMs * random.pick([1, 3, 10]),
        key: random.pick(tenants.slice(0, 2)),
        hasKey: random.chance(0.5),
      },
    }),
  );
}

function planOverrides(random: Random, anyNode: () => number, soon: () => number): OverridePlan[] {
  return Array.from({ length: random.int(1, 3) }, (_, index): OverridePlan => {
    const limit = random.pick(limitNames);
    const isRated = limit === "pace" || limit === "meter";
    const values = {
      concurrency: random.int(1, 4),
      ...(isRated ? { ratePerSecond: random.int(2, 12) } : {}),
      ...(random.chance(0.5) ? { ms: random.int(500, 6_000) } : {}),
    };
    return { item: `v${index}`, at: soon(), node: anyNode(), limit, values: random.chance(0.3) ? null : values };
  });
}

function planRun(random: Random) {
  const body = (): BodyPlan => ({
    ms: random.int(1, 120),
    ...(random.chance(0.3) ? { fails: random.int(1, 2) } : {}),
    ...(random.chance(0.04) ? { kills: random.pick([1, 2, 20]) } : {}),
  });
  const workflow = random.weighted({
    ...{ program: 8, limited: 1, keyed: 1, paced: 1, held: 1 },
    ...{ sweep: 2, assembly: 1.5, order: 2, built: 1.5 },
  });
  switch (workflow) {
    case "program":
    case "limited":
    case "keyed":
    case "paced":
    case "held":
      return { workflow, program: new ProgramMaker(random).make(), tenant: random.pick(tenants) } as const;
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
    gathers: left(plan.gathers),
    overrides: left(plan.overrides),
    queuePauses: left(plan.queuePauses),
    commands: left(plan.commands),
    disasters: left(plan.disasters),
    // The others refer to runs by their places.
    runs: plan.runs.map((run) => (dropped.has(run.item) ? { ...run, at: Number.POSITIVE_INFINITY } : run)),
  };
}
