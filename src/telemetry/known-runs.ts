/**
 * What a message does not say about its run: which run its whole family descends from, and when its code began. Mostly
 * that was heard in this process before; otherwise the database is asked, once.
 */
import { Recent } from "./recent.js";
import type { ToldEvent, ToldRun } from "./tell.js";

/** What is asked of Pawl. */
export interface RunSource {
  run(id: string): {
    get(): Promise<{ readonly parentId: string | null; readonly startedAt: Date | null }>;
  };
}

/** About 2 MB at most. */
const remembered = 10_000;

export class KnownRuns {
  readonly #source: RunSource;
  readonly #complain: (error: unknown) => void;
  readonly #roots = new Recent<string>(remembered);
  readonly #startedAt = new Recent<number>(remembered);
  readonly #asked = new Map<string, Promise<string>>();

  constructor(source: RunSource, complain: (error: unknown) => void) {
    this.#source = source;
    this.#complain = complain;
  }

  /** Those who ask for the root of a run are mostly its children. */
  hear({ runId, parentId }: ToldRun): void {
    const root = parentId === null ? runId : this.#roots.get(parentId);
    if (root !== undefined) this.#roots.set(runId, root);
  }

  hearOfStart({ runId, at }: ToldEvent): void {
    this.#startedAt.set(runId, at);
  }

  rootOf({ runId, parentId }: Pick<ToldRun, "runId" | "parentId">): string | Promise<string> {
    return parentId === null ? runId : (this.#roots.get(parentId) ?? this.#askForRoot(parentId));
  }

  /** When the code of a run that has ended began; null when it never did. */
  startedAtOf(runId: string): number | null | Promise<number | null> {
    return this.#startedAt.take(runId) ?? this.#askForStart(runId);
  }

  /** All children of a map may end at once: they ask once. */
  #askForRoot(runId: string): Promise<string> {
    const asked = this.#asked.get(runId);
    if (asked !== undefined) return asked;
    const answer = this.#findRoot(runId).finally(() => this.#asked.delete(runId));
    this.#asked.set(runId, answer);
    return answer;
  }

  async #findRoot(runId: string): Promise<string> {
    try {
      const { parentId } = await this.#source.run(runId).get();
      const root = await this.rootOf({ runId, parentId });
      this.#roots.set(runId, root);
      return root;
    } catch (error) {
      // The oldest one that we know of has to do.
      this.#complain(error);
      return runId;
    }
  }

  async #askForStart(runId: string): Promise<number | null> {
    try {
      return (await this.#source.run(runId).get()).startedAt?.getTime() ?? null;
    } catch (error) {
      this.#complain(error);
      return null;
    }
  }
}
