/** Runs the nodes of a graph: a node starts when all its predecessors are completed or skipped. Nodes run in parallel. */

export interface ScheduledNode {
  /** The name of the node in the log. */
  readonly key: string;
  /** The keys of its predecessors. */
  readonly after: readonly string[];
}

export interface DagPlan<Node extends ScheduledNode> {
  readonly nodes: readonly Node[];
  readonly concurrency: number;
  /** After a node has failed, "stop" starts no new node; "continue" starts the nodes that do not depend on the failed one. */
  readonly onFailure: "stop" | "continue";
  /** Returns the state of the node in the log; null if the log has no event of the node. */
  recordedState(node: Node): NodeEnd | "open" | null;
  /** Returns whether to skip the node, and if so, records that. Called when all predecessors are completed or skipped. */
  shouldSkip(node: Node, endedOf: (key: string) => NodeEnd | undefined): boolean;
  /** Runs the node. Resolves when the node is completed or skipped, and rejects when it has failed. */
  execute(node: Node): Promise<"completed" | "skipped">;
}

export type NodeEnd = "completed" | "skipped" | "failed";

export interface NodeFailure<Node> {
  readonly node: Node;
  readonly error: unknown;
}

/** Runs the graph. Resolves with the failed nodes when no node is running and no further node can start. */
export function runDag<Node extends ScheduledNode>(plan: DagPlan<Node>): Promise<readonly NodeFailure<Node>[]> {
  return new DagRun(plan).run();
}

class DagRun<Node extends ScheduledNode> {
  readonly #plan: DagPlan<Node>;
  /** By the key of a node: the number of its predecessors that are not completed or skipped. */
  readonly #openDependencyCounts = new Map<string, number>();
  readonly #successors = new Map<string, Node[]>();
  readonly #nodeEnds = new Map<string, NodeEnd>();
  /** Nodes whose predecessors are all completed or skipped. */
  readonly #readyNodes: Node[] = [];
  readonly #failures: NodeFailure<Node>[] = [];
  /** Ready nodes of which the log has no event. */
  readonly #unrecordedNodes: Node[] = [];
  /** The index of the first ready node that was not processed yet. */
  #nextReady = 0;
  /** The index of the first unrecorded node that was not started yet. */
  #nextUnrecorded = 0;
  #hasFailed = false;
  #runningCount = 0;
  #resolve: (failures: readonly NodeFailure<Node>[]) => void = () => {};
  #reject: (error: unknown) => void = () => {};

  constructor(plan: DagPlan<Node>) {
    this.#plan = plan;
    for (const node of plan.nodes) {
      this.#openDependencyCounts.set(node.key, node.after.length);
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
      for (const node of this.#plan.nodes) if (node.after.length === 0) this.#readyNodes.push(node);
      this.#advance();
    });
  }

  /** Starts every node that can start. It is a loop and no recursion, because a chain may have thousands of recorded steps. */
  #advance(): void {
    do this.#processReady();
    while (this.#startNext());
    if (this.#runningCount === 0) this.#resolve(this.#failures);
  }

  /** Starts recorded open nodes before unrecorded ones, so that nodes that had already started stay within the concurrency. */
  #processReady(): void {
    for (; this.#nextReady < this.#readyNodes.length; this.#nextReady += 1) {
      const node = this.#readyNodes[this.#nextReady] as Node;
      const recordedState = this.#plan.recordedState(node);
      if (recordedState === null) this.#unrecordedNodes.push(node);
      else if (recordedState === "completed" || recordedState === "skipped") this.#recordEnd(node, recordedState);
      else {
        // The node is executed to get its recorded error. The flag is set now, because that error arrives only after other
        // nodes would have started.
        if (recordedState === "failed") this.#hasFailed = true;
        this.#startNode(node);
      }
    }
  }

  /** Starts or skips the next unrecorded node. Returns false if there is none, or if it must not start now. */
  #startNext(): boolean {
    const node = this.#unrecordedNodes[this.#nextUnrecorded];
    if (node === undefined || this.#runningCount >= this.#plan.concurrency) return false;
    if (this.#hasFailed && this.#plan.onFailure === "stop") return false;
    this.#nextUnrecorded += 1;
    if (this.#plan.shouldSkip(node, (key) => this.#nodeEnds.get(key))) this.#recordEnd(node, "skipped");
    else this.#startNode(node);
    return true;
  }

  #startNode(node: Node): void {
    this.#runningCount += 1;
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
    this.#runningCount -= 1;
    try {
      this.#recordEnd(node, ended);
      this.#advance();
    } catch (error) {
      // The functions of the plan read the log and throw if it is damaged.
      this.#reject(error);
    }
  }

  #recordEnd(node: Node, ended: NodeEnd): void {
    this.#nodeEnds.set(node.key, ended);
    if (ended === "failed") return;
    for (const successor of this.#successors.get(node.key) ?? []) {
      const remaining = (this.#openDependencyCounts.get(successor.key) as number) - 1;
      this.#openDependencyCounts.set(successor.key, remaining);
      if (remaining === 0) this.#readyNodes.push(successor);
    }
  }
}
