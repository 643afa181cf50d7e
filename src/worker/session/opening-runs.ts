/**
 * Runs that a session owns, or is about to own, and whose turn has not started yet. A run may be claimed again while an
 * earlier opening still reads its log: a commit that was executed after its connection had failed has released it. Then
 * only the latest opening may start a turn.
 */
export class OpeningRuns {
  readonly #latest = new Map<string, Opening>();

  get size(): number {
    return this.#latest.size;
  }

  get ids(): Iterable<string> {
    return this.#latest.keys();
  }

  has(runId: string): boolean {
    return this.#latest.has(runId);
  }

  begin(runIds: readonly string[]): Opening {
    const opening = new Opening(this.#latest, runIds);
    for (const id of runIds) this.#latest.set(id, opening);
    return opening;
  }

  /** Openings of several runs last until all of them have a turn; this run has one now, whose end must be reacted to. */
  onTurnStarted(runId: string): void {
    this.#latest.delete(runId);
  }
}

export class Opening {
  readonly #latest: Map<string, Opening>;
  readonly #runIds: readonly string[];

  constructor(latest: Map<string, Opening>, runIds: readonly string[]) {
    this.#latest = latest;
    this.#runIds = runIds;
  }

  isLatest(runId: string): boolean {
    return this.#latest.get(runId) === this;
  }

  end(): void {
    for (const id of this.#runIds) if (this.isLatest(id)) this.#latest.delete(id);
  }
}
