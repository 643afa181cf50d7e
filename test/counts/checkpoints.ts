/** Places in a workflow's code where it stops until the test lets it go on. They stay open: a replay passes. */

interface Checkpoint {
  readonly reached: Promise<void>;
  readonly opened: Promise<void>;
  reach(): void;
  open(): void;
}

export class Checkpoints {
  readonly #all = new Map<string, Checkpoint>();

  /** In the workflow: stops here. It is no wait under `ctx`, so the run stays with its worker and writes nothing. */
  async stop(name: string): Promise<void> {
    const checkpoint = this.#at(name);
    checkpoint.reach();
    await checkpoint.opened;
  }

  /** In the test: lets the code go on from there. */
  open(name: string): void {
    this.#at(name).open();
  }

  /** In the test: when the code has come there. */
  reached(name: string): Promise<void> {
    return this.#at(name).reached;
  }

  #at(name: string): Checkpoint {
    let checkpoint = this.#all.get(name);
    if (checkpoint === undefined) this.#all.set(name, (checkpoint = newCheckpoint()));
    return checkpoint;
  }
}

function newCheckpoint(): Checkpoint {
  let reach = () => {};
  let open = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { reached, opened, reach, open };
}
