/** The order of a graph: whatever has all that it comes after is begun, side by side, as long as there is anything. */

export interface ScheduledNode {
  /** By which the engine knows it. */
  readonly key: string;
  /** The keys of those that it comes after. */
  readonly after: readonly string[];
}

export interface DagPlan<Node extends ScheduledNode> {
  readonly nodes: readonly Node[];
  readonly concurrency: number;
  /** When a node has failed: begin nothing new, or all that does not come after it. */
  readonly onFailure: "stop" | "continue";
  /** What the log says of it: null when it knows nothing. */
  recordedState(node: Node): NodeEnd | "open" | null;
  /** Whether it is not to be run; asked when all that it comes after has ended. The function that is asked records its answer. */
  shouldSkip(node: Node, endedOf: (key: string) => NodeEnd | undefined): boolean;
  /** Runs it; comes back when it is completed or skipped. */
  execute(node: Node): Promise<"completed" | "skipped">;
}

export type NodeEnd = "completed" | "skipped" | "failed";

export interface NodeFailure<Node> {
  readonly node: Node;
  readonly error: unknown;
}

/** Comes back when nothing runs and nothing more can begin, with what has failed. */
export function runDag<Node extends ScheduledNode>(plan: DagPlan<Node>): Promise<readonly NodeFailure<Node>[]> {
  return new DagRun(plan).run();
}

class DagRun<Node extends ScheduledNode> {
  readonly #plan: DagPlan<Node>;
  /** How many of those it comes after have not ended. */
  readonly #openDependencies = new Map<string, number>();
  readonly #successors = new Map<string, Node[]>();
  readonly #nodeEnds = new Map<string, NodeEnd>();
  /** Those that have all that they come after. */
  readonly #ready: Node[] = [];
  readonly #failures: NodeFailure<Node>[] = [];
  /** Those among them that the log knows nothing of. */
  readonly #unrecorded: Node[] = [];
  /** The first of those that has not been looked at. */
  #nextReady = 0;
  #nextUnrecorded = 0;
  #hasFailed = false;
  #running = 0;
  #resolve: (failures: readonly NodeFailure<Node>[]) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(plan: DagPlan<Node>) {
    this.#plan = plan;
    for (const node of plan.nodes) {
      this.#openDependencies.set(node.key, node.after.length);
      for (const before of node.after) {
        const list = this.#successors.get(before);
        if (list === undefined) this.#successors.set(before, [node]);
        else list.push(node);
      }
    }
  }

  run(): Promise<readonly NodeFailure<Node>[]> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      for (const node of this.#plan.nodes) if (node.after.length === 0) this.#ready.push(node);
      this.#advance();
    });
  }

  /** Begins what can begin. A loop, not a recursion: a chain of thousands of recorded steps passes through here. */
  #advance(): void {
    do this.#processReady();
    while (this.#startNext());
    if (this.#running === 0) this.#resolve(this.#failures);
  }

  /** What the log has comes first: whatever had begun has its place, and no other node may take it. */
  #processReady(): void {
    for (; this.#nextReady < this.#ready.length; this.#nextReady += 1) {
      const node = this.#ready[this.#nextReady] as Node;
      const ended = this.#plan.recordedState(node);
      if (ended === null) this.#unrecorded.push(node);
      else if (ended === "completed" || ended === "skipped") this.#recordEnd(node, ended);
      else {
        // How it failed is told when it is asked for, which is later than others are begun.
        if (ended === "failed") this.#hasFailed = true;
        this.#startNode(node);
      }
    }
  }

  /** Begins, or leaves out, the next of those that have not begun; false: there is none, or it has to wait. */
  #startNext(): boolean {
    const node = this.#unrecorded[this.#nextUnrecorded];
    if (node === undefined || this.#running >= this.#plan.concurrency) return false;
    if (this.#hasFailed && this.#plan.onFailure === "stop") return false;
    this.#nextUnrecorded += 1;
    if (this.#plan.shouldSkip(node, (key) => this.#nodeEnds.get(key))) this.#recordEnd(node, "skipped");
    else this.#startNode(node);
    return true;
  }

  #startNode(node: Node): void {
    this.#running += 1;
    this.#plan.execute(node).then(
      (ended) => this.#onNodeEnd(node, ended),
      (error) => {
        this.#hasFailed = true;
        this.#failures.push({ node, error });
        this.#onNodeEnd(node, "failed");
      },
    );
  }

  #onNodeEnd(node: Node, ended: NodeEnd): void {
    this.#running -= 1;
    try {
      this.#recordEnd(node, ended);
      this.#advance();
    } catch (error) {
      // What the agenda answers with is read from the log, and a row can be damaged.
      this.#reject(error);
    }
  }

  #recordEnd(node: Node, ended: NodeEnd): void {
    this.#nodeEnds.set(node.key, ended);
    if (ended === "failed") return;
    for (const successor of this.#successors.get(node.key) ?? []) {
      const remaining = (this.#openDependencies.get(successor.key) as number) - 1;
      this.#openDependencies.set(successor.key, remaining);
      if (remaining === 0) this.#ready.push(successor);
    }
  }
}
