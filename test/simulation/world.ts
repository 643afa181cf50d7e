/** A simulated world: what its seed has planned, first with faults, then without, until everything has ended. */
import type { Logger } from "../../src/index.js";
import type { Store } from "../../src/store/contract/store.js";
import { MemoryStore } from "../../src/store/memory/index.js";
import { Clients } from "./clients.js";
import { type FaultOptions, Faults } from "./kernel/faults.js";
import { Journal } from "./kernel/journal.js";
import { Random } from "./kernel/random.js";
import { Scheduler } from "./kernel/scheduler.js";
import { epochMs, SimProcess } from "./kernel/sim-process.js";
import type { Trace } from "./kernel/trace.js";
import { UserTable } from "./kernel/user-table.js";
import { Ledger } from "./ledger.js";
import { Operators } from "./operators.js";
import { type DisasterPlan, type NodePlan, planWithout, planWorld, type WorldPlan } from "./plan.js";
import { maxDeliveries, SimNode, type Surroundings } from "./sim-node.js";

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
  /** Nodes that another one has replaced. Those that were stopped, not killed, must leave nothing behind either. */
  readonly #replaced: SimNode[] = [];
  readonly #incarnations: number[] = [];
  readonly #around: Surroundings;
  readonly #clients: Clients;
  readonly #operators: Operators;
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
    const liveNode = (index: number) => this.#liveNode(index);
    this.#clients = new Clients({ ...this.#around, plan: this.plan, liveNode });
    this.#operators = new Operators({
      ...{ store: this.store, scheduler: this.scheduler, ledger: this.ledger, clients: this.#clients, liveNode },
      at: (delayMs, action) => this.#at(delayMs, action),
    });
  }

  /** The items of the plan that can be left out. */
  get items(): readonly string[] {
    const { runs, signals, commands, schedules, gathers, overrides, queuePauses, disasters } = this.plan;
    const others = [...disasters, ...commands, ...signals, ...schedules, ...gathers, ...overrides, ...queuePauses];
    return [...others, ...runs].map(({ item }) => item);
  }

  get maxDeliveries(): number {
    return maxDeliveries;
  }

  get hasTwoReleases(): boolean {
    const { nodes, disasters } = this.plan;
    return [...nodes, ...disasters].some(({ release }) => release === 2);
  }

  get leftOpen() {
    return [...this.#nodes, ...this.#replaced]
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
    const clients = this.#clients;
    const operators = this.#operators;
    for (const [index, run] of plan.runs.entries()) this.#at(run.at, () => clients.startRun(index, run));
    for (const gather of plan.gathers) this.#at(gather.at, () => clients.gather(gather));
    for (const signal of plan.signals) this.#at(signal.at, () => clients.signal(signal));
    for (const command of plan.commands) this.#at(command.at, () => void operators.command(command));
    for (const schedule of plan.schedules) this.#at(schedule.at, () => operators.putSchedule(schedule));
    for (const override of plan.overrides) this.#at(override.at, () => operators.override(override));
    for (const pause of plan.queuePauses) this.#at(pause.at, () => operators.pauseQueue(pause));
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
    const deadline = scheduler.now + longestCalmMs;
    // What is on its way when the last run ends (late commits, lost hints that are polled for) arrives before the workers stop, and may
    // begin another run.
    for (let isQuiet = false; !isQuiet; isQuiet = await this.#tidyUp()) {
      void janitor();
      if (!(await scheduler.runUntil(() => isEnded, deadline))) {
        this.#stuck = `not everything ended: ${await this.#describeOpenRuns()}`;
        return;
      }
      await scheduler.runUntil(() => false, scheduler.now + 6_000);
      isEnded = false;
    }
    await this.#stopAll();
  }

  async #stopAll(): Promise<void> {
    const { scheduler } = this;
    let running = 0;
    for (const { worker, pawl, process } of [...this.#nodes, ...this.#replaced]) {
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

  async #tidyUp(): Promise<boolean> {
    const isAnswered = this.#clients.repeatUnanswered();
    return (await this.#operators.tidyUp()) && isAnswered;
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
    return `${texts.join("\n  ")}; starts without answer: ${this.#clients.unanswered.join()}`;
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
    const previous = this.#nodes[index];
    if (previous !== undefined) this.#replaced.push(previous);
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
