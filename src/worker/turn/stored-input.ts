/** The input of a run, decoded once: a graph of thousands of nodes is large, and several parts of a turn read it. */

import { decode } from "../../core/encoding/decode.js";
import { encode } from "../../core/encoding/encode.js";
import type { RunState } from "../../core/run/state.js";
import type { RunRecord } from "../../store/contract/records.js";

export class StoredInput {
  readonly #text: string;
  #decoded: { readonly value: unknown } | null = null;

  constructor(text: string) {
    this.#text = text;
  }

  get value(): unknown {
    this.#decoded ??= { value: decode(this.#text) };
    return this.#decoded.value;
  }
}

/** Decodes a new copy of the input, because user code may have modified the shared one. */
export function copyOfInput({ state, run }: { readonly state: RunState; readonly run: RunRecord }): unknown {
  if (state.checkedInput?.isTransformed !== true) return decode(run.input);
  return decode(encode(state.checkedInput.value, { label: "the input", limitBytes: Number.POSITIVE_INFINITY }));
}
