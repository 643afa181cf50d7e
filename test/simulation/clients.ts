/** The clients of a world: they start runs and send signals, and repeat what was not acknowledged. */
import type { GraphBuilder, RunHandle } from "../../src/index.js";
import type { Journal } from "./kernel/journal.js";
import type { Scheduler } from "./kernel/scheduler.js";
import type { Ledger, TokenStart } from "./ledger.js";
import type { GatherPlan, ProgramRunPlan, RunPlan, SignalPlan, WorldPlan } from "./plan.js";
import type { SimNode } from "./sim-node.js";

export interface ClientsPort {
  readonly plan: WorldPlan;
  readonly scheduler: Scheduler;
  readonly journal: Journal;
  readonly ledger: Ledger;
  /** The process, or another one if it is dead or stands still. */
  liveNode(index: number): SimNode | null;
}

export class Clients {
  readonly #port: ClientsPort;
  readonly #startedRuns = new Map<number, string>();
  readonly #doneItems = new Set<string>();
  readonly #firstSent = new Map<string, number>();
  readonly #tries = new Map<string, number>();

  constructor(port: ClientsPort) {
    this.#port = port;
  }

  /** The run of an item of the plan; undefined if its start was not acknowledged. */
  runOf(index: number): string | undefined {
    return this.#startedRuns.get(index);
  }

  /** Starts without an answer. */
  get unanswered(): readonly string[] {
    return this.#port.plan.runs
      .filter(({ item, at }) => isPlanned(at) && !this.#doneItems.has(item))
      .map(({ item }) => item);
  }

  /** Repeats what was not acknowledged. Returns whether there is nothing of that. */
  repeatUnanswered(): boolean {
    const { runs, gathers, signals } = this.#port.plan;
    const isOpen = ({ item }: { readonly item: string }) => !this.#doneItems.has(item);
    let isQuiet = true;
    const repeat = (call: () => void) => {
      isQuiet = false;
      call();
    };
    for (const [index, run] of runs.entries())
      if (isPlanned(run.at) && isOpen(run)) repeat(() => this.startRun(index, run));
    for (const gather of gathers) if (isOpen(gather)) repeat(() => this.gather(gather));
    for (const signal of signals)
      if (isOpen(signal) && this.#startedRuns.has(signal.run)) repeat(() => this.signal(signal));
    return isQuiet;
  }

  startRun(index: number, plan: RunPlan): void {
    if ("conflict" in plan && plan.conflict !== undefined) return this.#startInConflict(index, plan, plan.conflict);
    void this.insist(plan.node, async (node) => {
      const handle = await startRun(node, plan);
      if (!node.process.isAlive) return;
      this.#onStarted(index, plan, node, handle);
      const workflow = nameOfWorkflow[plan.workflow];
      this.#port.ledger.starts.push({ plan: index, workflow, key: plan.item, run: handle.id });
      if (index % 2 === 0) this.#awaitResult(handle);
    });
  }

  #onStarted(index: number, { item }: RunPlan, { process }: SimNode, handle: RunHandle): void {
    const { scheduler } = this.#port;
    scheduler.trace.add(scheduler.now, process.name, `started ${item} as ${handle.id.slice(-6)}`);
    this.#startedRuns.set(index, handle.id);
    this.#doneItems.add(item);
  }

  /** Each try is a start of its own: the key says nothing about whether it was made before. */
  #startInConflict(
    index: number,
    plan: RunPlan & ProgramRunPlan,
    conflict: NonNullable<ProgramRunPlan["conflict"]>,
  ): void {
    const { group, policy } = conflict;
    const { workflow, program, tenant, item } = plan;
    void this.insist(plan.node, async (node) => {
      const sent = this.#send(item);
      const input = { program, tenant, group, token: sent.token };
      try {
        const handle = await node.pawl.start(node.definitions[workflow], input, {
          idempotencyKey: group,
          onConflict: policy,
        });
        if (!node.process.isAlive) return;
        this.#onStarted(index, plan, node, handle);
        const outcome = handle.created ? "created" : handle.replaced === true ? "replaced" : "attached";
        this.#acknowledge(sent, { workflow, run: handle.id, position: null, outcome, isLastInput: true });
      } catch (error) {
        if ((error as { code?: string }).code !== "ALREADY_ACTIVE") throw error;
        this.#doneItems.add(item);
      }
    });
  }

  gather(plan: GatherPlan): void {
    const { workflow, key, keep, quietMs, maxMs, hasKey, item } = plan;
    const isKeyed = workflow === "mail" && hasKey;
    void this.insist(plan.node, async (node) => {
      const sent = this.#send(item, isKeyed);
      const { token } = sent;
      const { pawl, definitions } = node;
      const debounce = { key, quiet: quietMs, max: maxMs };
      const handle: RunHandle<any, any> =
        workflow === "mail"
          ? await pawl.start(definitions.mail, { token, user: key }, isKeyed ? { idempotencyKey: item } : {})
          : workflow === "lists"
            ? await pawl.start(definitions.lists, { token }, { debounce: { ...debounce, keep: "all" } })
            : await pawl.start(
                definitions.notes,
                { token },
                { debounce: { ...debounce, keep: keep as "last" | "first" } },
              );
      if (!node.process.isAlive || this.#doneItems.has(item)) return;
      this.#doneItems.add(item);
      this.#acknowledge(sent, {
        ...{ workflow, run: handle.runId, outcome: handle.merged ? "merged" : "created" },
        position: workflow === "notes" ? null : workflow === "mail" ? positionOf(handle.id) : null,
        isLastInput: keep === "last" || workflow !== "notes",
      });
      handle.result().then(
        (output: unknown) => this.#port.ledger.tokenOutputs.push({ token, output }),
        () => {},
      );
    });
  }

  /** @param isRepeatable whether all tries are the same start */
  #send(item: string, isRepeatable = false): Pick<TokenStart, "token" | "sentAfter"> {
    const { ledger, journal } = this.#port;
    const tries = (this.#tries.get(item) ?? 0) + 1;
    this.#tries.set(item, tries);
    const token = isRepeatable ? item : `${item}.${tries}`;
    ledger.sentTokens.add(token);
    return { token, sentAfter: journal.seq };
  }

  #acknowledge(
    sent: Pick<TokenStart, "token" | "sentAfter">,
    start: Omit<TokenStart, "token" | "sentAfter" | "acknowledgedAfter">,
  ): void {
    const { ledger, journal } = this.#port;
    ledger.tokenStarts.push({ ...sent, ...start, acknowledgedAfter: journal.seq });
  }

  #awaitResult(handle: RunHandle): void {
    handle.result().then(
      (output) => this.#port.ledger.results.push({ run: handle.id, output }),
      () => {},
    );
  }

  signal({ item, node, run, name }: SignalPlan): void {
    const { journal, ledger } = this.#port;
    const id = this.#startedRuns.get(run);
    if (id === undefined) return;
    const sentAfter = this.#firstSent.get(item) ?? journal.seq;
    this.#firstSent.set(item, sentAfter);
    void this.insist(node, async ({ pawl }) => {
      let isAccepted = true;
      await pawl
        .run(id)
        .signal(name, item, { key: item })
        .catch((error: { code?: string }) => {
          // A run that has ended takes no signals.
          if (error.code !== "INVALID_STATE") throw error;
          isAccepted = false;
        });
      if (this.#doneItems.has(item)) return;
      this.#doneItems.add(item);
      if (isAccepted) ledger.signals.push({ run: id, name, key: item, sentAfter, acknowledgedAfter: journal.seq });
    });
  }

  /** Calls a client until it is acknowledged, or until its process dies. */
  async insist(index: number, call: (node: SimNode) => Promise<void>): Promise<void> {
    const node = this.#port.liveNode(index);
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
}

const isPlanned = (at: number) => at < Number.POSITIVE_INFINITY;

const positionOf = (id: string) => Number(id.split(".")[1]);

/** The name of the hero, like the key of the start, is the name of the item. */
function startRun({ pawl, definitions }: SimNode, plan: RunPlan): Promise<RunHandle<any, any>> {
  const idempotencyKey = plan.item;
  switch (plan.workflow) {
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
    default: {
      const { workflow, program, tenant, startByMs } = plan;
      const startBy = startByMs === undefined ? {} : { startBy: startByMs };
      return pawl.start(definitions[workflow], { program, tenant }, { idempotencyKey, ...startBy });
    }
  }
}

const nameOfWorkflow = {
  program: "program",
  limited: "limited",
  keyed: "keyed",
  paced: "paced",
  held: "held",
  sweep: "Sweep",
  assembly: "Assembly",
  order: "order",
  built: "built",
} as const;
