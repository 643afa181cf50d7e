/** The input of a run that gathers a list. */
import { decode } from "../encoding/decode.js";
import { encode } from "../encoding/encode.js";
import type { GatheredItem } from "./plan-gathering.js";

/** Each input has the size that a value may have, so the list may be larger. */
export function encodeList(items: readonly Pick<GatheredItem, "input">[]): string {
  const values = items.map(({ input }) => decode(input as string));
  return encode(values, { label: "the list of gathered inputs", limitBytes: Number.POSITIVE_INFINITY });
}
