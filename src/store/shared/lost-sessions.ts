/**
 * Sessions of connections that were given up while something was under way. They may still be at work, and what they did is
 * not known before they are gone: nothing else is sent until they have ended.
 */
export class LostSessions<Session> {
  readonly #lost = new Set<Session>();
  readonly #end: (sessions: readonly Session[]) => Promise<void>;
  #clearing: Promise<void> | null = null;

  /** @param end returns when all of these are gone; throws when that cannot be found out now */
  constructor(end: (sessions: readonly Session[]) => Promise<void>) {
    this.#end = end;
  }

  add(session: Session): void {
    this.#lost.add(session);
  }

  get areGone(): boolean {
    return this.#lost.size === 0;
  }

  /** Returns when all of them are gone; throws when that cannot be found out now. One call ends them for all that wait. */
  async clear(): Promise<void> {
    while (!this.areGone) {
      this.#clearing ??= this.#endAll().finally(() => {
        this.#clearing = null;
      });
      await this.#clearing;
    }
  }

  async #endAll(): Promise<void> {
    const sessions = [...this.#lost];
    await this.#end(sessions);
    for (const session of sessions) this.#lost.delete(session);
  }
}
