/**
 * Records in shared memory which run's code is on the stack of the event loop, so that another thread can read it while the
 * loop is blocked.
 *
 * A frame is a piece of user code from its call until it returns or awaits. Entering and leaving one takes about 100 ns. Step
 * keys are written once and referred to by number. The id of a run is written each time, because runs are too many for a
 * table: one cost one-step runs 2 % in garbage.
 */
import { memoryFor, SharedTexts } from "./shared-texts.js";

const maxDepth = 8;
const runIdBytes = 48;
/** 500 KB in total; a step key that is not in the table costs one write. */
const keysSize = { count: 2_048, bytes: 256 };

/** Indexes into the control words. */
const heartbeatWord = 0;
const depthWord = 1;
const suspectWord = 2;
const firstFrameWord = 4;
const wordsPerFrame = 3;

/** The frame behind all others holds the suspect run, see `turn/suspect-run-queue.ts`. */
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

  /** Marks a run that may have blocked a worker before: it is reported if the loop blocks while no frame is entered. */
  markSuspect(worker: number, runId: string): void {
    this.#write(suspectFrame, worker, runId, "");
    this.#control[suspectWord] = 1;
  }

  clearSuspect(): void {
    this.#control[suspectWord] = 0;
  }

  /** Shows the other thread that the event loop is running. */
  heartbeat(): void {
    Atomics.add(this.#control, heartbeatWord, 1);
  }

  // ── Read by the other thread ───────────────────────────────────────────────────────────────────────────────────────

  get heartbeats(): number {
    return Atomics.load(this.#control, heartbeatWord);
  }

  /** The innermost frame; if there is none, the suspect run, or null. */
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
