/**
 * The rows of a list that grows page by page, while the runs behind it change. Rows keep their places: a refreshed page
 * updates the rows that are there, counts runs that would stand between them, and marks rows that do not fit any more.
 */
import { signal } from "@preact/signals";
import type { Answer, ApiError, Query } from "../../api/api.js";

export type ListedRun = Answer<"listRuns">["runs"][number];
type PageAnswer = Answer<"listRuns">;

export interface Row {
  readonly run: ListedRun;
  /** Whether the run does not fit the search any more. */
  readonly isGone: boolean;
}

interface Page {
  readonly cursor: string | null;
  readonly firstRow: number;
  readonly rowCount: number;
  readonly next: string | null;
  /** Whether the server stopped because it had examined enough runs. */
  readonly isCut: boolean;
}

export const pageSize = 100;

let lastKey = 0;

export class RunList {
  /** Tells lists apart. */
  readonly key = ++lastKey;
  /** The question of all pages. It names an instant, so that later runs do not push rows down. */
  readonly query: Query;
  readonly startedAt: number;
  /** Runs that are created later can fit until this instant; null: none can. */
  readonly growsUntil: number | null;
  /** Advances with every change, for components that show the list. */
  readonly version = signal(0);
  error: ApiError | null = null;
  readonly #rows: Row[] = [];
  readonly #indexById = new Map<string, number>();
  readonly #pages: Page[] = [];
  /** Runs that have come to fit the search, and whose place is between rows. */
  #appeared = new Set<string>();
  #goneCount = 0;

  constructor(query: Query, { startedAt, growsUntil }: Pick<RunList, "startedAt" | "growsUntil">) {
    this.query = query;
    this.startedAt = startedAt;
    this.growsUntil = growsUntil;
  }

  get rowCount(): number {
    return this.#rows.length;
  }

  get pageCount(): number {
    return this.#pages.length;
  }

  get appearedCount(): number {
    return this.#appeared.size;
  }

  get goneCount(): number {
    return this.#goneCount;
  }

  /** The cursor of the page that comes next; null if there is none. */
  get next(): string | null {
    return this.#pages.at(-1)?.next ?? null;
  }

  get isCut(): boolean {
    return this.#pages.at(-1)?.isCut ?? false;
  }

  row(index: number): Row | undefined {
    return this.#rows[index];
  }

  page(index: number): Page | undefined {
    return this.#pages[index];
  }

  /** The question for a page; null if it cannot be asked before the pages above it. */
  queryOf(index: number): Query | null {
    const cursor = index === 0 ? null : (this.#pages[index - 1]?.next ?? null);
    return index > 0 && cursor === null ? null : { ...this.query, limit: pageSize, cursor };
  }

  /** The pages whose rows are in a range. */
  pagesIn(first: number, last: number): readonly number[] {
    return this.#pages.flatMap(({ firstRow, rowCount }, index) =>
      firstRow <= last && firstRow + rowCount > first ? [index] : [],
    );
  }

  accept(index: number, answer: PageAnswer): void {
    this.error = null;
    if (index < this.#pages.length) this.#refresh(this.#pages[index] as Page, answer);
    else if (index === this.#pages.length) this.#append(answer);
    this.version.value += 1;
  }

  fail(error: ApiError): void {
    this.error = error;
    this.version.value += 1;
  }

  #append({ runs, next, isCut }: PageAnswer): void {
    const firstRow = this.#rows.length;
    // A run may have been on a page before, if it has moved there since.
    const added = runs.filter(({ id }) => !this.#indexById.has(id));
    for (const run of added) {
      this.#indexById.set(run.id, this.#rows.length);
      this.#rows.push({ run, isGone: false });
    }
    const cursor = this.next;
    this.#pages.push({ cursor, firstRow, rowCount: added.length, next, isCut });
  }

  #refresh(page: Page, { runs, next }: PageAnswer): void {
    const answered = new Set(runs.map(({ id }) => id));
    let lastAnswered = -1;
    for (const run of runs) {
      const index = this.#indexById.get(run.id);
      if (index === undefined) this.#appeared.add(run.id);
      else {
        this.#rows[index] = { run, isGone: false };
        lastAnswered = Math.max(lastAnswered, index);
      }
    }
    // Rows behind the last one of the answer may have been pushed off the page by others: nothing is known of them.
    const end = page.firstRow + page.rowCount;
    const known = next === null ? end - 1 : Math.min(lastAnswered, end - 1);
    for (let index = page.firstRow; index <= known; index += 1) {
      const row = this.#rows[index] as Row;
      if (!answered.has(row.run.id)) this.#rows[index] = { ...row, isGone: true };
    }
    this.#goneCount = this.#rows.reduce((count, { isGone }) => count + (isGone ? 1 : 0), 0);
  }
}
