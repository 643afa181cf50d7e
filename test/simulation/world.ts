/** A simulated world: what its seed has planned, first with faults, then without, until everything has ended. */
import type { GraphBuilder, Logger, RunHandle } from "../../src/index.js";
import type { RunRecord, Store } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { type FaultOptions, Faults } from "./kernel/faults.js";
import { Journal } from "./kernel/journal.js";
import { Random } from "./kernel/random.js";
import { Scheduler } from "./kernel/scheduler.js";
import { epochMs, SimProcess } from "./kernel/sim-process.js";
import type { Trace } from "./kernel/trace.js";
import { UserTable } from "./kernel/user-table.js";
import { Ledger } from "./ledger.js";
import {
  type CommandPlan,
  type DisasterPlan,
  type NodePlan,
  planWithout,
  planWorld,
  type RunPlan,
  type SchedulePlan,
  type SignalPlan,
  type WorldPlan,
} from "./plan.js";
import { maxDeliveries, SimNode, type Surroundings } from "./sim-node.js";
import { limitedConcurrency } from "./workload/function-workflows.js";
import { signalNames } from "./workload/program.js";

export interface WorldOptions {
  readonly seed: number;
  readonly trace: Trace;
  readonly faults?: FaultOptions;
  /** Items of the plan that are left out. */
  readonly dropped?: ReadonlySet<string>;
}

/** How long everything may take to end once the faults are over, in simulated time. */
const longestCalmMs = 600_000;
const janitorEveryMs = 1_500;

export class World {
  readonly plan: WorldPlan;
  readonly store: Store;
  readonly scheduler: Scheduler;
  readonly faults: Faults;
  readonly ledger = new Ledger();
  readonly userTable = new UserTable();
  readonly journal: Journal;
  /** Warnings and errors that Pawl has logged, without their errors. */
  readonly warnings: string[] = [];
  /** Rejections that no code handles; each would end its process. */
  readonly unhandled: string[] = [];
  readonly #nodes: SimNode[] = [];
  readonly #incarnations: number[] = [];
  readonly #around: Surroundings;
  readonly #startedRuns = new Map<number, string>();
  readonly #sentSignals = new Set<string>();
  readonly #firstSent = new Map<string, number>();
  #isCalm = false;
  /** Why the world did not end; null if it did. */
  #stuck: string | null = null;

  constructor({ seed, trace, faults, dropped }: WorldOptions) {
    this.plan = planWithout(planWorld(seed), dropped ?? new Set());
    this.scheduler = new Scheduler(trace);
    const now = () => epochMs + Math.floor(this.scheduler.now);
    this.journal = new Journal(now);
    this.faults = new Faults(seed, faults);
    const database = new SimProcess("database", this.scheduler, new Random(seed, "database"));
    this.store = new MemoryStore({ runtime: database.runtime });
    this.#around = {
      ...{ seed, inner: this.store, scheduler: this.scheduler, faults: this.faults, journal: this.journal },
      ...{ ledger: this.ledger, userTable: this.userTable, hasCrossProcessHints: this.plan.hasCrossProcessHints },
      logger: this.#createLogger(),
      isPoisonOn: () => !this.#isCalm,
      onPoison: (node) => this.#onPoison(node),
    };
  }

  /** The items of the plan that can be left out. */
  get items(): readonly string[] {
    const { runs, signals, commands, schedules, disasters } = this.plan;
    return [...disasters, ...commands, ...signals, ...schedules, ...runs].map(({ item }) => item);
  }

  get limits(): ReadonlyMap<string, number> {
    return new Map([["limited", limitedConcurrency]]);
  }

  get maxDeliveries(): number {
    return maxDeliveries;
  }

  get hasTwoReleases(): boolean {
    const { nodes, disasters } = this.plan;
    return [...nodes, ...disasters].some(({ release }) => release === 2);
  }

  get leftOpen() {
    return this.#nodes
      .filter(({ process }) => process.isAlive)
      .map(({ process, faultyStore: { openTransactions, listenerCount } }) => ({
        ...{ process: process.name, transactions: openTransactions, listeners: listenerCount },
        timers: process.pendingTimers,
      }));
  }

  get nodes(): readonly SimNode[] {
    return this.#nodes;
  }

  /** Why the world did not end; null if it did. */
  get stuck(): string | null {
    return this.#stuck;
  }

  async run(): Promise<void> {
    const onRejection = (error: unknown) =>
      void this.unhandled.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
    process.on("unhandledRejection", onRejection);
    try {
      await this.#run();
    } finally {
      process.off("unhandledRejection", onRejection);
    }
  }

  async #run(): Promise<void> {
    const { plan, scheduler } = this;
    for (const index of plan.nodes.keys()) this.#spawn(index, (plan.nodes[index] as NodePlan).release);
    for (const [index, run] of plan.runs.entries()) this.#at(run.at, () => this.#startRun(index, run));
    for (const signal of plan.signals) this.#at(signal.at, () => this.#signal(signal));
    for (const command of plan.commands) this.#at(command.at, () => void this.#command(command));
    for (const schedule of plan.schedules) this.#at(schedule.at, () => this.#putSchedule(schedule));
    for (const disaster of plan.disasters) this.#at(disaster.at, () => this.#strike(disaster));
    await scheduler.runUntil(() => false, plan.calmAt);
    await this.#calmDown();
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

  async #calmDown(): Promise<void> {
    const { scheduler } = this;
    this.#isCalm = true;
    this.faults.isOn = false;
    const newest = Math.max(
      ...this.plan.nodes.map(({ release }) => release),
      ...this.plan.disasters.map(({ release }) => release),
    );
    for (const [index, node] of this.#nodes.entries()) {
      node.process.thaw();
      if (node.release === newest && node.process.isAlive && node.worker?.phase !== "stopped") continue;
      if (node.process.isAlive) void node.worker?.stop();
      this.#spawn(index, newest as 1 | 2);
    }
    let isEnded = false;
    const janitor = async () => {
      isEnded = await this.#tidyUp();
      if (!isEnded) scheduler.schedule(null, janitorEveryMs, "janitor", () => void janitor());
    };
    void janitor();
    const deadline = scheduler.now + longestCalmMs;
    if (!(await scheduler.runUntil(() => isEnded, deadline))) {
      this.#stuck = `not everything ended: ${await this.#describeOpenRuns()}`;
      return;
    }
    await this.#stopAll();
  }

  async #stopAll(): Promise<void> {
    const { scheduler } = this;
    // What is on its way when the last run ends (late commits, lost hints that are polled for) arrives before the workers stop.
    await scheduler.runUntil(() => false, scheduler.now + 6_000);
    let running = 0;
    for (const { worker, pawl, process } of this.#nodes) {
      if (!process.isAlive) continue;
      running += 1;
      void Promise.resolve(worker?.stop())
        .then(() => pawl.close())
        .then(() => {
          running -= 1;
        });
    }
    if (!(await scheduler.runUntil(() => running === 0, scheduler.now + 60_000)))
      this.#stuck = `${running} process(es) did not stop`;
  }

  /** What people do when something waits for them: repeat what was not acknowledged, resume, signal. */
  async #tidyUp(): Promise<boolean> {
    let isQuiet = true;
    for (const [index, run] of this.plan.runs.entries()) {
      if (this.#startedRuns.has(index) || run.at === Number.POSITIVE_INFINITY) continue;
      isQuiet = false;
      this.#startRun(index, run);
    }
    for (const signal of this.plan.signals) {
      if (this.#sentSignals.has(signal.item) || !this.#startedRuns.has(signal.run)) continue;
      isQuiet = false;
      this.#signal(signal);
    }
    for (const { name, status } of await this.store.schedules.list({ after: null, limit: 10 })) {
      if (status === "paused") continue;
      isQuiet = false;
      void this.#liveNode(0)
        ?.pawl.schedules.pause(name)
        .catch(() => {});
    }
    const open = await this.store.runs({ active: true, limit: 1_000 });
    for (const run of open) this.#help(run);
    return isQuiet && open.length === 0;
  }

  #help(run: RunRecord): void {
    const client = this.#liveNode(0);
    if (client === null) return;
    const handle = client.pawl.run(run.id);
    const round = this.scheduler.eventCount;
    if (run.status === "paused") void this.#send(run.id, "resume", handle.resume());
    else if (run.waiting?.includes('"signal"')) {
      for (const name of signalNames) {
        const key = `janitor-${name}-${round}`;
        void handle.signal(name, key, { key }).catch(() => {});
      }
    }
  }

  async #describeOpenRuns(): Promise<string> {
    const open = await this.store.runs({ active: true, limit: 20 });
    const texts = await Promise.all(
      open.map(async ({ id, workflow, status, waiting }) => {
        const [task] = await this.store.tasks([id]);
        const log = (await this.store.log(id, { after: 0, limit: 1_000 })).map(({ type, node }) =>
          node === null ? type : `${type}(${node})`,
        );
        return `run ${id} (${workflow}) ${status} waiting=${waiting} task=${JSON.stringify(task)} log=${log.slice(-8).join(" ")}`;
      }),
    );
    const missing = [...this.plan.runs.keys()].filter((index) => !this.#startedRuns.has(index));
    return `${texts.join("\n  ")}; starts without answer: ${missing.join()}`;
  }

  // ── Clients ────────────────────────────────────────────────────────────────────────────────────────────────────────

  #startRun(index: number, plan: RunPlan): void {
    void this.#insist(plan.node, async (node) => {
      const { process } = node;
      const key = plan.item;
      const handle = await startRun(node, plan);
      if (!process.isAlive) return;
      this.scheduler.trace.add(this.scheduler.now, process.name, `started ${plan.item} as ${handle.id.slice(-6)}`);
      this.ledger.starts.push({ plan: index, workflow: nameOfWorkflow[plan.workflow], key, run: handle.id });
      this.#startedRuns.set(index, handle.id);
      if (index % 2 === 0) this.#awaitResult(handle);
    });
  }

  #putSchedule({ item, node, everyMs, overlap, catchUp, program }: SchedulePlan): void {
    void this.#insist(node, async ({ pawl }) => {
      await pawl.schedules.put(item, { workflow: "program", input: { program }, every: everyMs, overlap, catchUp });
      this.ledger.schedules.push({ name: item, everyMs });
    });
  }

  #awaitResult(handle: RunHandle): void {
    handle.result().then(
      (output) => this.ledger.results.push({ run: handle.id, output }),
      () => {},
    );
  }

  #signal({ item, node, run, name }: SignalPlan): void {
    const id = this.#startedRuns.get(run);
    if (id === undefined) return;
    const sentAfter = this.#firstSent.get(item) ?? this.journal.seq;
    this.#firstSent.set(item, sentAfter);
    void this.#insist(node, async ({ pawl }) => {
      let isAccepted = true;
      await pawl
        .run(id)
        .signal(name, item, { key: item })
        .catch((error: { code?: string }) => {
          // A run that has ended takes no signals.
          if (error.code !== "INVALID_STATE") throw error;
          isAccepted = false;
        });
      if (this.#sentSignals.has(item)) return;
      this.#sentSignals.add(item);
      if (isAccepted)
        this.ledger.signals.push({ run: id, name, key: item, sentAfter, acknowledgedAfter: this.journal.seq });
    });
  }

  async #command({ node, run, command }: CommandPlan): Promise<void> {
    const id = this.#startedRuns.get(run);
    const client = this.#liveNode(node);
    if (id === undefined || client === null) return;
    const handle = client.pawl.run(id);
    const sent = {
      pause: () => handle.pause("an operator"),
      resume: () => handle.resume(),
      skip: () => handle.skip(),
      cancel: () => handle.cancel("an operator"),
      "force-cancel": () => handle.cancel("an operator", { force: true }),
    }[command]();
    await this.#send(id, command, sent);
  }

  async #send(run: string, command: string, sent: Promise<unknown>): Promise<void> {
    const entry = {
      run,
      command,
      at: epochMs + Math.floor(this.scheduler.now),
      outcome: "sent" as "sent" | "done" | "refused",
    };
    this.ledger.commands.push(entry);
    try {
      await sent;
      entry.outcome = "done";
    } catch {
      entry.outcome = "refused";
    }
  }

  /** Calls a client until it is acknowledged, or until its process dies. Idempotency keys make that safe. */
  async #insist(index: number, call: (node: SimNode) => Promise<void>): Promise<void> {
    const node = this.#liveNode(index);
    if (node === null) return;
    for (let tries = 0; tries < 5; tries += 1) {
      try {
        return await call(node);
      } catch (error) {
        if ((error as { transient?: boolean }).transient !== true) throw error;
        await node.sleep(200);
      }
    }
  }

  /** The process, or another one if it is dead. */
  #liveNode(index: number): SimNode | null {
    const candidates = [this.#nodes[index], ...this.#nodes];
    return candidates.find((node) => node?.process.isAlive && node.process.frozenUntil <= this.scheduler.now) ?? null;
  }

  // ── Disasters ──────────────────────────────────────────────────────────────────────────────────────────────────────

  #strike({ node: index, kind, ms, release }: DisasterPlan): void {
    const node = this.#nodes[index] as SimNode;
    if (this.#isCalm || !node.process.isAlive) return;
    if (kind !== "stop" && !this.faults.allows(kind)) return;
    if (kind !== "stop") this.faults.note(kind);
    this.scheduler.trace.add(this.scheduler.now, node.process.name, `${kind} ${ms}`);
    if (kind === "clock-jump") node.process.skewMs += ms;
    else if (kind === "freeze") node.process.freeze(ms);
    else {
      this.ledger.deaths.push({ process: node.process.name, after: this.journal.seq });
      if (kind === "stop") void node.worker?.stop();
      else node.process.crash();
      this.#at(ms, () => this.#respawn(node, index, release));
    }
  }

  #onPoison(node: SimNode): void {
    const index = this.#nodes.indexOf(node);
    if (index < 0 || !node.process.isAlive) return;
    this.scheduler.trace.add(this.scheduler.now, node.process.name, "is killed by its run");
    this.ledger.deaths.push({ process: node.process.name, after: this.journal.seq });
    node.process.crash();
    this.#at(500, () => this.#respawn(node, index, node.release as 1 | 2));
  }

  #respawn(previous: SimNode, index: number, release: 1 | 2): void {
    if (this.#nodes[index] !== previous) return;
    this.#spawn(index, release);
  }

  #spawn(index: number, release: 1 | 2): void {
    const incarnation = (this.#incarnations[index] ?? 0) + 1;
    this.#incarnations[index] = incarnation;
    const node = new SimNode(this.plan.nodes[index] as NodePlan, release, incarnation, this.#around);
    this.#nodes[index] = node;
    void node.start();
  }

  #at(delayMs: number, action: () => void): void {
    if (delayMs < Number.POSITIVE_INFINITY) this.scheduler.schedule(null, delayMs, "plan", action);
  }

  #createLogger(): Logger {
    const note =
      (level: string) =>
      (text: string): void => {
        this.warnings.push(text);
        this.scheduler.trace.add(this.scheduler.now, level, text.replace(/\s+/g, " ").slice(0, 200));
      };
    return { debug: () => {}, info: () => {}, warn: note("warn"), error: note("error") };
  }
}

/** The name of the hero, like the key of the start, is the name of the item. */
function startRun({ pawl, definitions }: SimNode, plan: RunPlan): Promise<RunHandle<any, any>> {
  const idempotencyKey = plan.item;
  switch (plan.workflow) {
    case "program":
    case "limited":
      return pawl.start(definitions[plan.workflow], { program: plan.program }, { idempotencyKey });
    case "sweep":
      return pawl.start(definitions.sweep, plan.input, { idempotencyKey, hero: { type: "Account", id: plan.item } });
    case "assembly":
      return pawl.start(definitions.assembly, plan.input, { idempotencyKey });
    case "order":
      return pawl.start(definitions.order, plan.input, { idempotencyKey });
    case "built": {
      const items = Array.from({ length: plan.width }, (_, index) => index);
      const build = (g: GraphBuilder) => {
        const parts = g.fanOut(items, { name: (n) => `part_${n}`, job: definitions.press, args: () => plan.body });
        g.node("aggregate", { job: definitions.paint, args: plan.body, dependsOn: parts });
      };
      return pawl.build("built", build, { idempotencyKey });
    }
  }
}

const nameOfWorkflow = {
  program: "program",
  limited: "limited",
  sweep: "Sweep",
  assembly: "Assembly",
  order: "order",
  built: "built",
} as const;
