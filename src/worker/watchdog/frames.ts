/**
 * Records in shared memory which run's code is on the call stack, so that the watchdog thread can read it while the event
 * loop is blocked.
 *
 * A frame lasts from the call of user code until the code returns or awaits. Entering and leaving a frame takes about 100 ns.
 * Step keys are written once to a table and referred to by their place in it. The id of a run is written for each frame,
 * because there are too many runs for a table: with one, garbage collection cost one-step runs 2 %.
 */
import { memoryFor, SharedTexts } from "./shared-texts.js";

const maxDepth = 8;
const runIdBytes = 48;
/** The table takes about 500 KB; a step key that is not in the table is added with one write. */
const keysSize = { count: 2_048, bytes: 256 };

/** Indexes into the control words. */
const heartbeatWord = 0;
const depthWord = 1;
const suspectWord = 2;
const firstFrameWord = 4;
const wordsPerFrame = 3;

/** The index of an additional frame after all others, which holds the suspect run: see `turn/suspect-run-queue.ts`. */
const suspectFrame = maxDepth;

const controlBytes = 256;
const runIdsBytes = (maxDepth + 1) * runIdBytes;
const keysAt = controlBytes + runIdsBytes;

export interface Frame {
  /** The index of the worker in this process. */
  readonly worker: number;
  readonly runId: string;
  /** The key of the step; "" for the workflow's handler. */
  readonly step: string;
}

export class Frames {
  readonly memory: SharedArrayBuffer;
  readonly #control: Int32Array;
  readonly #runIds: Buffer;
  readonly #keys: SharedTexts;
  #depth = 0;

  constructor(memory = new SharedArrayBuffer(keysAt + memoryFor(keysSize))) {
    this.memory = memory;
    this.#control = new Int32Array(memory, 0, controlBytes / 4);
    this.#runIds = Buffer.from(memory, controlBytes, runIdsBytes);
    this.#keys = new SharedTexts(memory, keysAt, keysSize);
  }

  enter(worker: number, runId: string, key: string): void {
    if (this.#depth < maxDepth) this.#write(this.#depth, worker, runId, key);
    this.#depth += 1;
    this.#control[depthWord] = this.#depth;
  }

  leave(): void {
    this.#depth -= 1;
    this.#control[depthWord] = this.#depth;
  }

  /** Marks a run that may have blocked a worker before. It is reported if the event loop blocks outside of any frame. */
  markSuspect(worker: number, runId: string): void {
    this.#write(suspectFrame, worker, runId, "");
    this.#control[suspectWord] = 1;
  }

  clearSuspect(): void {
    this.#control[suspectWord] = 0;
  }

  /** Shows the watchdog thread that the event loop is running. */
  heartbeat(): void {
    Atomics.add(this.#control, heartbeatWord, 1);
  }

  // ── Read by the watchdog thread ────────────────────────────────────────────────────────────────────────────────────

  get heartbeats(): number {
    return Atomics.load(this.#control, heartbeatWord);
  }

  /** Returns the innermost frame, or if no frame is entered the suspect run; null if there is no suspect run either. */
  top(): Frame | null {
    const depth = Atomics.load(this.#control, depthWord);
    if (depth > 0) return this.#read(Math.min(depth, maxDepth) - 1);
    return Atomics.load(this.#control, suspectWord) === 1 ? this.#read(suspectFrame) : null;
  }

  #write(frame: number, worker: number, runId: string, key: string): void {
    const firstWord = firstFrameWord + frame * wordsPerFrame;
    this.#control[firstWord] = worker;
    this.#control[firstWord + 1] = this.#runIds.write(runId, frame * runIdBytes, runIdBytes, "latin1");
    this.#control[firstWord + 2] = this.#keys.placeOf(key);
  }

  #read(frame: number): Frame {
    const firstWord = firstFrameWord + frame * wordsPerFrame;
    const [worker = 0, length = 0, key = 0] = this.#control.subarray(firstWord, firstWord + wordsPerFrame);
    const from = frame * runIdBytes;
    return { worker, runId: this.#runIds.toString("latin1", from, from + length), step: this.#keys.at(key) };
  }
}
