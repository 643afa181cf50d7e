/** What a resumable step goes through its items with. */

import { isDeepStrictEqual } from "node:util";
import { InvalidInputError } from "../../core/errors/errors.js";
import { guardMethods } from "../../core/errors/guarded-promise.js";
import { checkOptions, checkWholeNumber } from "../../core/naming/check-options.js";
import { type Duration, parseDuration } from "../../core/naming/duration.js";
import { requireSyncResult } from "../../core/naming/sync-result.js";
import type { Checkpoints } from "../step-engine.js";

export interface Pages<Item, Cursor> {
  /** The items after this cursor (null: from the beginning), in the order of their keys, at most `limit`. */
  fetch(after: Cursor | null, limit: number): readonly Item[] | Promise<readonly Item[]>;
  /** What an item is known by: a property, or a function. Each item's must come after that of the item before. */
  readonly key: keyof Item | ((item: Item) => Cursor);
  /** How many to fetch at a time; default 100. */
  readonly size?: number;
}

const advanceOptions = new Set(["from"]);
const skipToOptions = new Set(["wait"]);
const pagesOptions = new Set<string>(["fetch", "key", "size"] satisfies (keyof Pages<any, any>)[]);

export class StepIterator {
  readonly name: string;
  readonly #checkpoints: Checkpoints;

  /** @internal */
  constructor(name: string, checkpoints: Checkpoints) {
    this.name = name;
    this.#checkpoints = checkpoints;
  }

  /** Where the step stands: what was last set, also by an execution before this one; null at the beginning. */
  get cursor(): any {
    return this.#checkpoints.cursor;
  }

  /** True when an execution before this one was interrupted, or failed. */
  get resumed(): boolean {
    return this.#checkpoints.resumed;
  }

  /** True when this execution has moved the cursor. */
  get advanced(): boolean {
    return this.#checkpoints.advanced;
  }

  get description(): string {
    return `at step "${this.name}", cursor ${describeValue(this.cursor)}`;
  }

  /** Moves the cursor: the next execution finds exactly this value. An item is done. */
  set(cursor: unknown): Promise<void> {
    return this.#checkpoints.set(cursor);
  }

  /** Adds one to a cursor that is a whole number; one that is not set yet counts from `from`, or 0. */
  async advance(options: { readonly from?: number } = {}): Promise<void> {
    checkOptions("advance()", options, advanceOptions);
    const cursor: unknown = this.cursor ?? options.from ?? 0;
    if (typeof cursor === "bigint") return this.set(cursor + 1n);
    if (!Number.isSafeInteger(cursor))
      throw new InvalidInputError(
        `advance() needs a cursor that is a whole number; it is ${describeValue(cursor)}. Use set().`,
      );
    return this.set((cursor as number) + 1);
  }

  /** Makes durable what there is. Here the step may be interrupted; its successor goes on from the cursor. */
  checkpoint(): Promise<void> {
    return this.#checkpoints.checkpoint();
  }

  /** Moves the cursor and ends this execution; the next begins there, after `wait`. */
  skipTo(cursor: unknown, options: { readonly wait?: Duration } = {}): never {
    checkOptions("skipTo()", options, skipToOptions);
    const waitMs = options.wait === undefined ? 0 : parseDuration(options.wait, "wait of skipTo");
    return this.#checkpoints.skipTo(cursor, waitMs);
  }

  /** How many items there are, for the progress that people see. */
  total(count: number): void {
    if (!Number.isInteger(count) || count < 0)
      throw new InvalidInputError(`total() takes a whole number, not ${String(count)}.`);
    this.#checkpoints.total(count);
  }

  /** Through an array, or anything that can be iterated and stays the same; the cursor is the index. */
  async over<Item>(items: Iterable<Item>, fn: (item: Item, index: number) => unknown): Promise<void> {
    if (typeof (items as Partial<Iterable<Item>> | null)?.[Symbol.iterator] !== "function")
      throw new InvalidInputError("over() needs something to iterate over, such as an array.");
    const start: unknown = this.cursor ?? 0;
    if (!Number.isSafeInteger(start))
      throw new InvalidInputError(
        `over() counts its items; its cursor is a whole number, not ${describeValue(start)}.`,
      );
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

  /** Through the pages of a table or an API, item by item; the cursor is the key of the last item done. */
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

  /** The same, a page at a time; the cursor is the key of the last item of the last page done. */
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
      throw new InvalidInputError("There must be a fetch(after, limit) to get the items.");
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
          `fetch(after, limit) was asked for what comes after ${describeValue(after)} and returned that very item.`,
        );
      yield page;
    }
  }

  /** Through `[item, cursor]` pairs. A function gets the cursor to begin after. */
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
    const what = typeof key === "function" ? "key to know it by" : `"${String(key)}" to know it by`;
    throw new InvalidInputError(`An item has no ${what}.`);
  };
}

function describeValue(value: unknown): string {
  if (typeof value === "bigint") return `${value}n`;
  if (value === null || typeof value !== "object")
    return typeof value === "string" ? JSON.stringify(value) : String(value);
  try {
    return JSON.stringify(value);
  } catch {
    return "that cannot be shown";
  }
}
