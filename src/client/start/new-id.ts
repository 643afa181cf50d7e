/** Makes ids of runs. It gets random bytes for 256 ids at once, because a call for each id costs more than making the id. */
import { uuidv7 } from "../../core/naming/ids.js";
import { randomHex } from "../../runtime/random-hex.js";
import type { Runtime } from "../../runtime/runtime.js";

const digitsPerId = 20;
const idsPerPool = 256;

export class IdSource {
  readonly #runtime: Runtime;
  #pool = "";
  #usedDigits = 0;

  constructor(runtime: Runtime) {
    this.#runtime = runtime;
  }

  next(): string {
    if (this.#usedDigits === this.#pool.length) {
      this.#pool = randomHex(this.#runtime, (digitsPerId / 2) * idsPerPool);
      this.#usedDigits = 0;
    }
    this.#usedDigits += digitsPerId;
    return uuidv7(this.#runtime.now(), this.#pool.slice(this.#usedDigits - digitsPerId, this.#usedDigits));
  }
}
