/** The input of a run, read once: a graph of thousands of nodes is large, and not only the code asks for it. */
import { decode } from "../core/codec.js";

export class Given {
  readonly #text: string;
  #read: { readonly value: unknown } | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  get value(): unknown {
    this.#read ??= { value: decode(this.#text) };
    return this.#read.value;
  }
}
