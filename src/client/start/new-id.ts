/** New ids. Random bytes are fetched in bulk: one call for ten bytes costs more than the rest of a start's id. */
import { randomBytes } from "node:crypto";
import { uuidv7 } from "../../core/naming/ids.js";

const digitsPerId = 20;
let pool = "";
let used = 0;

export function newId(): string {
  if (used === pool.length) {
    pool = randomBytes((digitsPerId / 2) * 256).toString("hex");
    used = 0;
  }
  used += digitsPerId;
  return uuidv7(Date.now(), pool.slice(used - digitsPerId, used));
}
