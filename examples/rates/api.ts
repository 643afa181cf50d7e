/** An external API, as a small fake: it has pages of items, and answers only a limited number of requests in a row. */
import { Effects } from "../effects.js";

type Answer =
  | { readonly kind: "page"; readonly items: readonly string[] }
  | { readonly kind: "rate limited"; readonly retryAfter: string };

class ExternalApi {
  /** How many pages have items; those after them are empty. */
  pages = 0;
  /** How many requests are answered before it refuses. */
  allowance = Number.POSITIVE_INFINITY;
  #answered = 0;

  /** The first page is 1. */
  async fetch({ page }: { readonly page: number }): Promise<Answer> {
    if (this.#answered >= this.allowance) {
      this.#answered = 0;
      return { kind: "rate limited", retryAfter: "1 minute" };
    }
    this.#answered += 1;
    return { kind: "page", items: page <= this.pages ? [`${page}a`, `${page}b`] : [] };
  }

  reset(pages: number, allowance: number): void {
    this.pages = pages;
    this.allowance = allowance;
    this.#answered = 0;
  }
}

/** The local copy: an existing item is not stored twice. */
class Copy {
  readonly effects = new Effects<string>();

  async store(item: string): Promise<void> {
    this.effects.once(item, item);
  }
}

export const externalApi = new ExternalApi();
export const copy = new Copy();
