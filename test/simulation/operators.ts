/** The operators of a world: commands to runs, schedules, limits and queues; and at the end, help for all that waits. */
import type { RunRecord, Store } from "../../src/store/contract/store.js";
import type { Clients } from "./clients.js";
import type { Scheduler } from "./kernel/scheduler.js";
import { epochMs } from "./kernel/sim-process.js";
import type { Ledger } from "./ledger.js";
import type { CommandPlan, OverridePlan, QueuePausePlan, SchedulePlan } from "./plan.js";
import type { SimNode } from "./sim-node.js";
import { signalNames } from "./workload/program.js";

export interface OperatorsPort {
  readonly store: Store;
  readonly scheduler: Scheduler;
  readonly ledger: Ledger;
  readonly clients: Clients;
  liveNode(index: number): SimNode | null;
  at(delayMs: number, action: () => void): void;
}

/** A run that does not fit to the code is canceled after it was resumed so often. */
const mostResumes = 4;

export class Operators {
  readonly #port: OperatorsPort;
  readonly #resumes = new Map<string, number>();
  readonly #retried = new Set<string>();

  constructor(port: OperatorsPort) {
    this.#port = port;
  }

  async command({ node, run, command }: CommandPlan): Promise<void> {
    const { clients, liveNode } = this.#port;
    const id = clients.runOf(run);
    const client = liveNode(node);
    if (id === undefined || client === null) return;
    const handle = client.pawl.run(id);
    if (command === "retry") return this.#retry(client, id);
    const sent = {
      pause: () => handle.pause("an operator"),
      resume: () => handle.resume(),
      "resume-with-output": () => handle.resume({ output: "by an operator" }),
      "resume-at": () => handle.resumeAt("flaky"),
      reattempt: () => handle.reattempt("press"),
      skip: () => handle.skip(),
      cancel: () => handle.cancel("an operator"),
      "force-cancel": () => handle.cancel("an operator", { force: true }),
    }[command]();
    await this.#send(id, command, sent);
  }

  async #retry({ pawl }: SimNode, run: string): Promise<void> {
    const { ledger } = this.#port;
    const retried = pawl.run(run).retry({ by: "an operator" });
    await this.#send(
      run,
      "retry",
      retried.then(({ id }) => ledger.retries.push({ run, retry: id })),
    );
  }

  async #send(run: string, command: string, sent: Promise<unknown>): Promise<void> {
    const { ledger, scheduler } = this.#port;
    const entry = {
      ...{ run, command, at: epochMs + Math.floor(scheduler.now) },
      outcome: "sent" as "sent" | "done" | "refused",
    };
    ledger.commands.push(entry);
    try {
      await sent;
      entry.outcome = "done";
    } catch {
      entry.outcome = "refused";
    }
  }

  override({ node, limit, values }: OverridePlan): void {
    const limits = this.#port.liveNode(node)?.pawl.limits;
    if (limits === undefined) return;
    const rate = values?.ratePerSecond;
    const sent =
      values === null
        ? limits.clearOverride(limit)
        : limits.override(limit, {
            concurrency: values.concurrency,
            ...(rate === undefined ? {} : { rate: { limit: rate, per: 1_000, burst: 1 } }),
            ...(values.ms === undefined ? {} : { until: values.ms }),
            reason: "an operator",
          });
    void this.#send("", values === null ? "clear override" : "override", sent);
  }

  pauseQueue({ node, queue, ms }: QueuePausePlan): void {
    const { liveNode, clients, at } = this.#port;
    const client = liveNode(node);
    if (client === null) return;
    void this.#send("", "pause queue", client.pawl.pauseQueue(queue, "an operator"));
    at(ms, () => void clients.insist(node, ({ pawl }) => pawl.resumeQueue(queue)));
  }

  putSchedule({ item, node, everyMs, overlap, catchUp, program, commands }: SchedulePlan): void {
    const { clients, ledger, at } = this.#port;
    void clients.insist(node, async ({ pawl }) => {
      const input = { program, tenant: "a" };
      await pawl.schedules.put(item, { workflow: "program", input, every: everyMs, overlap, catchUp });
      ledger.schedules.push(item);
    });
    for (const { at: delayMs, node: from, command } of commands)
      at(delayMs, () => this.#commandSchedule(item, from, command));
  }

  #commandSchedule(name: string, node: number, command: SchedulePlan["commands"][number]["command"]): void {
    const schedules = this.#port.liveNode(node)?.pawl.schedules;
    if (schedules === undefined) return;
    const sent = {
      pause: () => schedules.pause(name),
      resume: () => schedules.resume(name),
      trigger: () => schedules.trigger(name),
      "force-trigger": () => schedules.trigger(name, { force: true }),
    }[command]();
    void this.#send("", `schedule ${command}`, sent);
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /** What people do when something waits for them. Returns whether nothing does. */
  async tidyUp(): Promise<boolean> {
    const { store, liveNode } = this.#port;
    const client = liveNode(0);
    let isQuiet = true;
    for (const { name, status } of await store.schedules.list({ after: null, limit: 10 })) {
      if (status === "paused") continue;
      isQuiet = false;
      void client?.pawl.schedules.pause(name).catch(() => {});
    }
    for (const { name } of await store.maintenance.pausedQueues()) void client?.pawl.resumeQueue(name).catch(() => {});
    if (await this.#retryFailed(client)) isQuiet = false;
    const open = await store.runs({ active: true, limit: 1_000 });
    for (const run of open) await this.#help(run, client);
    return isQuiet && open.length === 0;
  }

  /** Some of the runs that have failed are retried once, by two operators. */
  async #retryFailed(client: SimNode | null): Promise<boolean> {
    const failed = await this.#port.store.runs({ status: "failed", limit: 100 });
    const chosen = failed.filter(({ id }) => !this.#retried.has(id) && Number.parseInt(id.slice(-1), 16) % 2 === 0);
    for (const { id } of client === null ? [] : chosen) {
      this.#retried.add(id);
      for (let operators = 0; operators < 2; operators += 1) void this.#retry(client as SimNode, id);
    }
    return chosen.length > 0;
  }

  async #help(run: RunRecord, client: SimNode | null): Promise<void> {
    if (client === null) return;
    const { scheduler } = this.#port;
    const handle = client.pawl.run(run.id);
    const round = scheduler.eventCount;
    if (run.status === "paused") {
      const resumes = (this.#resumes.get(run.id) ?? 0) + 1;
      this.#resumes.set(run.id, resumes);
      if (resumes > mostResumes && (await this.#doesNotFit(run)))
        void this.#send(run.id, "force-cancel", handle.cancel("an operator", { force: true }));
      else void this.#send(run.id, "resume", handle.resume());
    } else if (run.waiting?.includes('"signal"')) {
      for (const name of signalNames) {
        const key = `janitor-${name}-${round}`;
        void handle.signal(name, key, { key }).catch(() => {});
      }
    }
  }

  async #doesNotFit({ id }: RunRecord): Promise<boolean> {
    const log = await this.#port.store.log(id, { after: 0, limit: 100_000 });
    return log.findLast(({ type }) => type === "run.paused")?.data?.includes('"NonDeterminismError"') === true;
  }
}
