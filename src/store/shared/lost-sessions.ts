/**
 * Server sessions whose connection was given up while a statement was running. Such a session may still be executing,
 * and its outcome is unknown until it has ended, so the store sends no other statement before that.
 */
export class LostSessions<Session> {
  readonly #sessions = new Set<Session>();
  readonly #endSessions: (sessions: readonly Session[]) => Promise<void>;
  #ending: Promise<void> | null = null;

  /** @param endSessions resolves when all of these sessions have ended; rejects when that cannot be determined now */
  constructor(endSessions: (sessions: readonly Session[]) => Promise<void>) {
    this.#endSessions = endSessions;
  }

  add(session: Session): void {
    this.#sessions.add(session);
  }

  get haveEnded(): boolean {
    return this.#sessions.size === 0;
  }

  /**
   * Ends all sessions. Resolves when they have ended; rejects when that cannot be determined now. Concurrent callers
   * share one attempt.
   */
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
