/** The processes of a campaign with limits: workers that are killed, stopped and started again, with other numbers. */
import { ProgramWorker } from "../program-worker.js";

export interface Concurrency {
  readonly tenant: number;
  readonly api: number;
  readonly region: number;
  /** How many may begin in a second. */
  readonly pace: number;
}

/** See test/processes/programs/limits-worker.mjs. Durations are in milliseconds. */
export interface LimitWorkerOptions {
  readonly url: string;
  /** The file to which each body appends a line. */
  readonly bodies: string;
  readonly name: string;
  readonly lease: number;
  readonly poll: number;
  readonly housekeeping: number;
  /** How many runs it executes at a time. */
  readonly places: number;
  readonly concurrency: Concurrency;
}

export class LimitWorker extends ProgramWorker<LimitWorkerOptions> {
  /** @param folder where the output of its processes goes */
  constructor(options: LimitWorkerOptions, folder: string) {
    super("limits-worker", options, folder);
  }
}
