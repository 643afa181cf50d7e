/** Places in a workflow's code where it stops until the test lets it continue. They stay open, so a replay passes. */

interface Checkpoint {
  readonly reached: Promise<void>;
  readonly opened: Promise<void>;
  reach(): void;
  open(): void;
}

export class Checkpoints {
  readonly #all = new Map<string, Checkpoint>();

  /** In the workflow: stops here. This is not a durable wait, so the run stays with its worker and writes nothing. */
  async stop(name: string): Promise<void> {
    const checkpoint = this.#at(name);
    checkpoint.reach();
    await checkpoint.opened;
  }

  /** In the test: lets the code continue from this place. */
  open(name: string): void {
    this.#at(name).open();
  }

  /** In the test: resolves when the code has reached this place. */
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
