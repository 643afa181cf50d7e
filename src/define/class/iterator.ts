/** The iterator of a resumable step: calls user code for each item and moves the cursor. */

import { isDeepStrictEqual } from "node:util";
import { InvalidInputError } from "../../core/errors/errors.js";
import { guardMethods } from "../../core/errors/guarded-promise.js";
import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { requireSyncResult } from "../../core/naming/sync-result.js";
import type { Checkpoints } from "../step-engine.js";

/** Items that are fetched page by page, for `iter.records` and `iter.batches`. */
export interface Pages<Item, Cursor> {
  /** Returns at most `limit` items after the key `after`, in the order of their keys; `after` is null for the first page. */
  fetch(after: Cursor | null, limit: number): readonly Item[] | Promise<readonly Item[]>;
  /** The key of an item, as a property or a function. The keys must grow from item to item. */
  readonly key: keyof Item | ((item: Item) => Cursor);
  /** How many items to fetch at a time. Default 100. */
  readonly size?: number;
}

const advanceOptions = new Set(["from"]);
const skipToOptions = new Set(["wait"]);
const pagesOptions = new Set<string>(["fetch", "key", "size"] satisfies (keyof Pages<any, any>)[]);

/**
 * The second argument of a resumable step's function. It iterates over items and stores a cursor, so that a crash or an
 * interruption repeats at most the item in flight. When the step is interrupted, the awaited call
 * throws a flow-control exception, so the code after it does not run.
 *
 * @example
 * ```ts
 * this.resumableStep("notify_all", { maxRuntime: "5 minutes" }, async (w, iter) => {
 *   await iter.over(w.input.ids, (id) => notify(id));
 * });
 * ```
 */
export class StepIterator {
  /** The name of the step. */
  readonly name: string;
  readonly #checkpoints: Checkpoints;

  /** @internal */
  constructor(name: string, checkpoints: Checkpoints) {
    this.name = name;
    this.#checkpoints = checkpoints;
  }

  /** The value that this execution, or an earlier execution of the step, last set; null if none was set. */
  get cursor(): any {
    return this.#checkpoints.cursor;
  }

  /** Whether an earlier execution of the step was interrupted or failed. */
  get resumed(): boolean {
    return this.#checkpoints.resumed;
  }

  /** Whether this execution has moved the cursor. */
  get advanced(): boolean {
    return this.#checkpoints.advanced;
  }

  /** A text for logs, such as `at step "send", cursor 4`. */
  get description(): string {
    return `at step "${this.name}", cursor ${describeValue(this.cursor)}`;
  }

  /**
   * Moves the cursor durably and counts an item as done. Throws a CursorTooLargeError or a SerializationError if the value
   * cannot be stored.
   *
   * @example
   * ```ts
   * for (let page = iter.cursor ?? 1; page <= 10; page += 1) {
   *   await importPage(page);
   *   await iter.set(page + 1);
   * }
   * ```
   */
  set(cursor: unknown): Promise<void> {
    return this.#checkpoints.set(cursor);
  }

  /** Adds one to a cursor that is a whole number. Throws an InvalidInputError if the cursor is something else. */
  async advance(
    options: {
      /** The value of a cursor that is not set yet. Default 0. */
      readonly from?: number;
    } = {},
  ): Promise<void> {
    checkOptions("advance()", options, advanceOptions);
    const cursor: unknown = this.cursor ?? options.from ?? 0;
    if (typeof cursor === "bigint") return this.set(cursor + 1n);
    if (!Number.isSafeInteger(cursor))
      throw new InvalidInputError(
        `advance() needs a cursor that is a whole number, but it is ${describeValue(cursor)}; use set().`,
      );
    return this.set((cursor as number) + 1);
  }

  /**
   * Makes the cursor durable without counting an item. The step may be interrupted by this call; the next execution then
   * continues from the cursor.
   */
  checkpoint(): Promise<void> {
    return this.#checkpoints.checkpoint();
  }

  /** Moves the cursor and ends this execution; the next execution starts from the cursor. */
  skipTo(
    cursor: unknown,
    options: {
      /** How long to wait before the next execution. Default 0. */
      readonly wait?: Duration;
    } = {},
  ): never {
    checkOptions("skipTo()", options, skipToOptions);
    const waitMs = options.wait === undefined ? 0 : parseDuration(options.wait, "wait of skipTo");
    return this.#checkpoints.skipTo(cursor, waitMs);
  }

  /** Sets the number of items, for `run.progress()`. `over` does this for arrays. */
  total(count: number): void {
    if (!Number.isInteger(count) || count < 0)
      throw new InvalidInputError(`total() needs a whole number, not ${String(count)}.`);
    this.#checkpoints.total(count);
  }

  /**
   * Calls `fn` for each item of an array, or of another iterable that yields the same items every time. The cursor is the
   * index of the next item.
   */
  async over<Item>(items: Iterable<Item>, fn: (item: Item, index: number) => unknown): Promise<void> {
    if (typeof (items as Partial<Iterable<Item>> | null)?.[Symbol.iterator] !== "function")
      throw new InvalidInputError("over() needs an iterable, such as an array.");
    const start: unknown = this.cursor ?? 0;
    if (!Number.isSafeInteger(start))
      throw new InvalidInputError(`over() needs a cursor that is a whole number, not ${describeValue(start)}.`);
    if (Array.isArray(items)) {
      this.total(items.length);
      for (let index = start as number; index < items.length; index += 1) {
        await this.#checkpoints.item(() => fn(items[index], index));
        await this.set(index + 1);
      }
      return;
    }
    let index = -1;
    for (const item of items) {
      index += 1;
      if (index < (start as number)) continue;
      await this.#checkpoints.item(() => fn(item, index));
      await this.set(index + 1);
    }
  }

  /**
   * Calls `fn` for each item of a table or an API that is read page by page. The cursor is the key of the last item for which
   * `fn` ended.
   *
   * @example
   * ```ts
   * const fetch = (after: number | null, limit: number) => users.findAfter(after ?? 0, limit);
   * await iter.records({ fetch, key: "id" }, (user) => mail.send(user));
   * ```
   */
  async records<Item, Cursor>(pages: Pages<Item, Cursor>, fn: (item: Item) => unknown): Promise<void> {
    checkOptions("records()", pages, pagesOptions);
    const keyOf = keyReader(pages);
    for await (const page of this.#pages(pages)) {
      for (const item of page) {
        await this.#checkpoints.item(() => fn(item));
        await this.set(keyOf(item));
      }
    }
  }

  /** Like `records`, but calls `fn` once per page. A page counts as one item, so a crash repeats the whole page. */
  async batches<Item, Cursor>(pages: Pages<Item, Cursor>, fn: (batch: readonly Item[]) => unknown): Promise<void> {
    checkOptions("batches()", pages, pagesOptions);
    const keyOf = keyReader(pages);
    for await (const page of this.#pages(pages)) {
      await this.#checkpoints.item(() => fn(page));
      await this.set(keyOf(page.at(-1) as Item));
    }
  }

  async *#pages<Item, Cursor>({ fetch, key, size = 100 }: Pages<Item, Cursor>): AsyncGenerator<readonly Item[]> {
    if (typeof fetch !== "function")
      throw new InvalidInputError(
        "records() and batches() need a function fetch(after, limit) that returns the items.",
      );
    checkWholeNumber("The size of a page", size);
    const keyOf = keyReader({ fetch, key });
    for (;;) {
      const after = (this.cursor ?? null) as Cursor | null;
      const page = await fetch(after, size);
      if (!Array.isArray(page))
        throw new InvalidInputError(`fetch(after, limit) must return a list of items, not ${describeValue(page)}.`);
      if (page.length === 0) return;
      const last = page.at(-1) as Item;
      if (after !== null && isDeepStrictEqual(keyOf(last), after))
        throw new InvalidInputError(
          `fetch(after, limit) was called with after ${describeValue(after)} and returned a page that ends with that item again.`,
        );
      yield page;
    }
  }

  /**
   * Calls `fn` for each item of a sequence of `[item, cursor]` pairs, where `cursor` is the position after the item. Pass a
   * function that makes the sequence from the stored cursor, so that a later execution does not start from the beginning.
   *
   * @example
   * ```ts
   * await iter.each((cursor: number | null) => linesFrom(cursor ?? 0), (line) => importLine(line));
   * ```
   */
  async each<Item>(
    pairs:
      | AsyncIterable<readonly [Item, unknown]>
      | Iterable<readonly [Item, unknown]>
      | ((cursor: any) => AsyncIterable<readonly [Item, unknown]> | Iterable<readonly [Item, unknown]>),
    fn: (item: Item) => unknown,
  ): Promise<void> {
    for await (const [item, cursor] of typeof pairs === "function"
      ? requireSyncResult("The function that each() takes", pairs(this.cursor))
      : pairs) {
      await this.#checkpoints.item(() => fn(item));
      await this.set(cursor);
    }
  }
}

guardMethods(StepIterator, ["advance", "over", "records", "batches", "each"]);

function keyReader<Item, Cursor>({ key }: Pages<Item, Cursor>): (item: Item) => Cursor {
  return (item) => {
    const value =
      typeof key === "function"
        ? requireSyncResult("key", key(item))
        : (item as Record<PropertyKey, unknown> | null)?.[key as PropertyKey];
    if (value !== undefined && value !== null) return value as Cursor;
    const what = typeof key === "function" ? "key" : `"${String(key)}"`;
    throw new InvalidInputError(`An item has no ${what}; every item needs a key, which becomes the cursor.`);
  };
}

function describeValue(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (value === null || typeof value !== "object")
    return typeof value === "string" ? JSON.stringify(value) : String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return "a value that cannot be shown";
  }
}
