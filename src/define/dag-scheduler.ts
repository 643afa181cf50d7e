/** The order of a graph: whatever has all that it comes after is begun, side by side, as long as there is anything. */

export interface ScheduledNode {
  /** By which the engine knows it. */
  readonly key: string;
  /** The keys of those that it comes after. */
  readonly after: readonly string[];
}

export interface Agenda<Node extends ScheduledNode> {
  readonly nodes: readonly Node[];
  readonly concurrency: number;
  /** When a node has failed: begin nothing new, or all that does not come after it. */
  readonly onFailure: "stop" | "continue";
  /** What the log says of it: null when it knows nothing. */
  ended(node: Node): Ended | "open" | null;
  /** Whether it is not to be run; asked when all that it comes after has ended. The function that is asked records its answer. */
  leavesOut(node: Node, endedOf: (key: string) => Ended | undefined): boolean;
  /** Runs it; comes back when it is completed or skipped. */
  execute(node: Node): Promise<"completed" | "skipped">;
}

export type Ended = "completed" | "skipped" | "failed";

export interface NodeFailure<Node> {
  readonly node: Node;
  readonly error: unknown;
}

/** Comes back when nothing runs and nothing more can begin, with what has failed. */
export function workOff<Node extends ScheduledNode>(agenda: Agenda<Node>): Promise<readonly NodeFailure<Node>[]> {
  return new Schedule(agenda).toTheEnd();
}

class Schedule<Node extends ScheduledNode> {
  readonly #agenda: Agenda<Node>;
  /** How many of those it comes after have not ended. */
  readonly #missing = new Map<string, number>();
  readonly #followers = new Map<string, Node[]>();
  readonly #ended = new Map<string, Ended>();
  /** Those that have all that they come after. */
  readonly #ready: Node[] = [];
  readonly #failures: NodeFailure<Node>[] = [];
  /** Those among them that the log knows nothing of. */
  readonly #untouched: Node[] = [];
  /** The first of those that has not been looked at. */
  #next = 0;
  #nextUntouched = 0;
  #hasFailed = false;
  #running = 0;
  #finish: (failures: readonly NodeFailure<Node>[]) => void = () => {};
  #giveUp: (error: unknown) => void = () => {};

  constructor(agenda: Agenda<Node>) {
    this.#agenda = agenda;
    for (const node of agenda.nodes) {
      this.#missing.set(node.key, node.after.length);
      for (const before of node.after) {
        const list = this.#followers.get(before);
        if (list === undefined) this.#followers.set(before, [node]);
        else list.push(node);
      }
    }
  }

  toTheEnd(): Promise<readonly NodeFailure<Node>[]> {
    return new Promise((resolve, reject) => {
      this.#finish = resolve;
      this.#giveUp = reject;
      for (const node of this.#agenda.nodes) if (node.after.length === 0) this.#ready.push(node);
      this.#goOn();
    });
  }

  /** Begins what can begin. A loop, not a recursion: a chain of thousands of recorded steps passes through here. */
  #goOn(): void {
    do this.#lookAtReady();
    while (this.#beginNext());
    if (this.#running === 0) this.#finish(this.#failures);
  }

  /** What the log has comes first: whatever had begun has its place, and no other node may take it. */
  #lookAtReady(): void {
    for (; this.#next < this.#ready.length; this.#next += 1) {
      const node = this.#ready[this.#next] as Node;
      const ended = this.#agenda.ended(node);
      if (ended === null) this.#untouched.push(node);
      else if (ended === "completed" || ended === "skipped") this.#note(node, ended);
      else {
        // How it failed is told when it is asked for, which is later than others are begun.
        if (ended === "failed") this.#hasFailed = true;
        this.#begin(node);
      }
    }
  }

  /** Begins, or leaves out, the next of those that have not begun; false: there is none, or it has to wait. */
  #beginNext(): boolean {
    const node = this.#untouched[this.#nextUntouched];
    if (node === undefined || this.#running >= this.#agenda.concurrency) return false;
    if (this.#hasFailed && this.#agenda.onFailure === "stop") return false;
    this.#nextUntouched += 1;
    if (this.#agenda.leavesOut(node, (key) => this.#ended.get(key))) this.#note(node, "skipped");
    else this.#begin(node);
    return true;
  }

  #begin(node: Node): void {
    this.#running += 1;
    this.#agenda.execute(node).then(
      (ended) => this.#came(node, ended),
      (error) => {
        this.#hasFailed = true;
        this.#failures.push({ node, error });
        this.#came(node, "failed");
      },
    );
  }

  #came(node: Node, ended: Ended): void {
    this.#running -= 1;
    try {
      this.#note(node, ended);
      this.#goOn();
    } catch (error) {
      // What the agenda answers with is read from the log, and a row can be damaged.
      this.#giveUp(error);
    }
  }

  #note(node: Node, ended: Ended): void {
    this.#ended.set(node.key, ended);
    if (ended === "failed") return;
    for (const follower of this.#followers.get(node.key) ?? []) {
      const left = (this.#missing.get(follower.key) as number) - 1;
      this.#missing.set(follower.key, left);
      if (left === 0) this.#ready.push(follower);
    }
  }
}
