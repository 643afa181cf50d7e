/** The processes of a campaign with schedules: workers that are killed and started again. */
import { ProgramWorker } from "../program-worker.js";

/** See test/processes/programs/schedules-worker.mjs. */
export interface ScheduleWorkerOptions {
  readonly url: string;
  /** The file to which each run appends a line. */
  readonly effects: string;
  /** In milliseconds. */
  readonly lease: number;
  readonly name: string;
  /** The last instant of the schedules that the worker declares; absent: they have none. */
  readonly endAt?: number;
}

export class ScheduleWorker extends ProgramWorker<ScheduleWorkerOptions> {
  /** @param folder where the output of its processes goes */
  constructor(options: ScheduleWorkerOptions, folder: string) {
    super("schedules-worker", options, folder);
  }
}
