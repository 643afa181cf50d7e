/**
 * Sessions of connections that were given up while something was under way. They may still be at work, and what they did is
 * not known before they are gone: nothing else is sent until they have ended.
 */
export class LostSessions<Session> {
  readonly #sessions = new Set<Session>();
  readonly #endSessions: (sessions: readonly Session[]) => Promise<void>;
  #ending: Promise<void> | null = null;

  /** @param endSessions returns when all of these are gone; throws when that cannot be found out now */
  constructor(endSessions: (sessions: readonly Session[]) => Promise<void>) {
    this.#endSessions = endSessions;
  }

  add(session: Session): void {
    this.#sessions.add(session);
  }

  get haveEnded(): boolean {
    return this.#sessions.size === 0;
  }

  /** Returns when all of them are gone; throws when that cannot be found out now. One call ends them for all that wait. */
  async ensureEnded(): Promise<void> {
    while (!this.haveEnded) {
      this.#ending ??= this.#endAll().finally(() => {
        this.#ending = null;
      });
      await this.#ending;
    }
  }

  async #endAll(): Promise<void> {
    const sessions = [...this.#sessions];
    await this.#endSessions(sessions);
    for (const session of sessions) this.#sessions.delete(session);
  }
}
