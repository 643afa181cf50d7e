/**
 * Whose code is on the stack of the event loop right now, in memory that another thread can read: when the loop is blocked,
 * nothing else can be asked.
 *
 * A frame is a piece of user code from its call until it returns or awaits. Entering one costs about 100 ns.
 */
const deepest = 8;
const idBytes = 64;
const keyBytes = 448;
const slotBytes = idBytes + keyBytes;

/** Places in the control words. */
const beats = 0;
const depthAt = 1;
const suspect = 2;
const lengthsFrom = 4;

/** The slot behind those of the frames has the run that is on trial, see `trial.ts`. */
const suspectSlot = deepest;

export interface Frame {
  readonly worker: number;
  readonly runId: string;
  /** "" in the handler of the workflow. */
  readonly step: string;
}

export class Frames {
  readonly memory: SharedArrayBuffer;
  readonly #control: Int32Array;
  readonly #text: Buffer;
  #depth = 0;
  /** What each slot holds: code of the same run, or the same step, need not be written again. */
  readonly #runs: string[] = new Array(deepest + 1).fill("");
  readonly #keys: string[] = new Array(deepest + 1).fill("");

  constructor(memory = new SharedArrayBuffer(256 + slotBytes * (deepest + 1))) {
    this.memory = memory;
    this.#control = new Int32Array(memory, 0, 64);
    this.#text = Buffer.from(memory, 256);
  }

  enter(worker: number, runId: string, key: string): void {
    if (this.#depth < deepest) this.#write(this.#depth, worker, runId, key);
    this.#depth += 1;
    this.#control[depthAt] = this.#depth;
  }

  leave(): void {
    this.#depth -= 1;
    this.#control[depthAt] = this.#depth;
  }

  /** This run blocked a worker before, perhaps: if nothing is on the stack that is known, it was this one again. */
  suspect(worker: number, runId: string): void {
    this.#write(suspectSlot, worker, runId, "");
    this.#control[suspect] = 1;
  }

  clear(): void {
    this.#control[suspect] = 0;
  }

  /** The event loop turns. */
  beat(): void {
    Atomics.add(this.#control, beats, 1);
  }

  // ── For the other thread ───────────────────────────────────────────────────────────────────────────────────────────

  get beats(): number {
    return Atomics.load(this.#control, beats);
  }

  /** The innermost frame, or the run on trial. */
  top(): Frame | null {
    const depth = Atomics.load(this.#control, depthAt);
    if (depth > 0) return this.#read(Math.min(depth, deepest) - 1);
    return Atomics.load(this.#control, suspect) === 1 ? this.#read(suspectSlot) : null;
  }

  #write(slot: number, worker: number, runId: string, key: string): void {
    const control = this.#control;
    const at = lengthsFrom + slot * 3;
    control[at] = worker;
    if (this.#runs[slot] !== runId) {
      this.#runs[slot] = runId;
      control[at + 1] = this.#text.write(runId, slot * slotBytes, idBytes, "latin1");
    }
    if (this.#keys[slot] === key) return;
    this.#keys[slot] = key;
    control[at + 2] = this.#text.write(key, slot * slotBytes + idBytes, keyBytes, "utf8");
  }

  #read(slot: number): Frame {
    const at = lengthsFrom + slot * 3;
    const [worker = 0, idLength = 0, keyLength = 0] = this.#control.subarray(at, at + 3);
    const from = slot * slotBytes;
    return {
      worker,
      runId: this.#text.toString("latin1", from, from + idLength),
      step: this.#text.toString("utf8", from + idBytes, from + idBytes + keyLength),
    };
  }
}
