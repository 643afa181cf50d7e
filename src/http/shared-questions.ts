/**
 * Shares the answers of questions that many people ask at the same time, such as a list that 200 people watch: while an
 * answer is fresh, it is read from the database once. An answer is fresh for half a second, unless this handler has
 * changed something or has announced a change meanwhile.
 */
import type { Runtime, Timer } from "../runtime/runtime.js";

const freshMs = 500;

interface SharedAnswer {
  readonly generation: number;
  readonly askedAt: number;
  readonly answer: Promise<unknown>;
}

export class SharedQuestions {
  readonly #runtime: Runtime;
  readonly #answers = new Map<string, SharedAnswer>();
  #generation = 0;
  #sweep: Timer | null = null;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  /** From now on, no answer of before is given. */
  invalidate(): void {
    this.#generation += 1;
    this.#answers.clear();
  }

  /** @param question identifies what is read; two questions with the same text have the same answer */
  ask<T>(question: string, read: () => Promise<T>): Promise<T> {
    const now = this.#runtime.monotonic();
    const known = this.#answers.get(question);
    if (known?.generation === this.#generation && now - known.askedAt < freshMs) return known.answer as Promise<T>;
    const answer = read();
    this.#answers.set(question, { generation: this.#generation, askedAt: now, answer });
    // Answers may be large, so they are not kept for longer than they are of use.
    this.#sweep ??= this.#runtime.setTimeout(() => this.#dropStale(), freshMs).unref();
    // A failure is told to all who wait for it, and not to those who ask later.
    answer.catch(() => {
      if (this.#answers.get(question)?.answer === answer) this.#answers.delete(question);
    });
    return answer;
  }

  #dropStale(): void {
    this.#sweep = null;
    const now = this.#runtime.monotonic();
    for (const [question, { askedAt }] of this.#answers) if (now - askedAt >= freshMs) this.#answers.delete(question);
    if (this.#answers.size > 0) this.#sweep = this.#runtime.setTimeout(() => this.#dropStale(), freshMs).unref();
  }
}
