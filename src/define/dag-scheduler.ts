/** Runs the nodes of a graph: a node starts when all its predecessors have ended, at the same time as other ready nodes. */

export interface ScheduledNode {
  /** The name of the node in the log. */
  readonly key: string;
  /** The keys of its predecessors. */
  readonly after: readonly string[];
}

export interface DagPlan<Node extends ScheduledNode> {
  readonly nodes: readonly Node[];
  readonly concurrency: number;
  /** After a node has failed: start no new node ("stop"), or all nodes that do not depend on it ("continue"). */
  readonly onFailure: "stop" | "continue";
  /** The state of the node in the log; null if the log does not have it. */
  recordedState(node: Node): NodeEnd | "open" | null;
  /** Whether to skip the node. Called when all predecessors have ended; it also records the skip. */
  shouldSkip(node: Node, endedOf: (key: string) => NodeEnd | undefined): boolean;
  /** Runs the node. Resolves when the node is completed or skipped. */
  execute(node: Node): Promise<"completed" | "skipped">;
}

export type NodeEnd = "completed" | "skipped" | "failed";

export interface NodeFailure<Node> {
  readonly node: Node;
  readonly error: unknown;
}

/** Resolves with the failures when no node runs and no further node can start. */
export function runDag<Node extends ScheduledNode>(plan: DagPlan<Node>): Promise<readonly NodeFailure<Node>[]> {
  return new DagRun(plan).run();
}

class DagRun<Node extends ScheduledNode> {
  readonly #plan: DagPlan<Node>;
  /** The number of predecessors that have not ended, by key. */
  readonly #openDependencies = new Map<string, number>();
  readonly #successors = new Map<string, Node[]>();
  readonly #nodeEnds = new Map<string, NodeEnd>();
  /** Nodes whose predecessors have all ended. */
  readonly #ready: Node[] = [];
  readonly #failures: NodeFailure<Node>[] = [];
  /** Ready nodes that the log does not have. */
  readonly #unrecorded: Node[] = [];
  /** The index of the first ready node that was not processed yet. */
  #nextReady = 0;
  /** The index of the first unrecorded node that was not started yet. */
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

  /** Starts every node that can start. A loop instead of a recursion, because a chain may have thousands of recorded steps. */
  #advance(): void {
    do this.#processReady();
    while (this.#startNext());
    if (this.#running === 0) this.#resolve(this.#failures);
  }

  /** Recorded nodes go first: a node that had started keeps its place within the concurrency. */
  #processReady(): void {
    for (; this.#nextReady < this.#ready.length; this.#nextReady += 1) {
      const node = this.#ready[this.#nextReady] as Node;
      const ended = this.#plan.recordedState(node);
      if (ended === null) this.#unrecorded.push(node);
      else if (ended === "completed" || ended === "skipped") this.#recordEnd(node, ended);
      else {
        // Its error is known only when its execution rejects, which is after other nodes would have started.
        if (ended === "failed") this.#hasFailed = true;
        this.#startNode(node);
      }
    }
  }

  /** Starts or skips the next unrecorded node; false if there is none, or if it has to wait. */
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
      // The plan reads from the log, whose rows can be damaged.
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
