/** New ids. Random bytes are fetched in bulk: one call for ten bytes costs more than the rest of a start's id. */
import { randomFillSync } from "node:crypto";
import { uuidv7 } from "../core/ids.js";

const perId = 10;
const pool = new Uint8Array(perId * 512);
let used = pool.length;

export function newId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const id = uuidv7(Date.now(), pool, used);
  used += perId;
  return id;
}
