/** Worker processes that note what they do in a file, to be killed and stopped. */
import { LibraryProcess } from "../support/library-process.js";

/** See the programs. */
export interface ResumableProcessOptions {
  readonly url: string;
  readonly ledger: string;
  readonly lease: number;
  readonly checkpoint?: "awaited" | "relaxed";
  /** From this item on the process waits until it is killed or stopped. */
  readonly holdAt?: number;
}

export class ResumableProcess extends LibraryProcess {
  readonly ready: Promise<unknown>;

  constructor(options: ResumableProcessOptions, program: "resumable-worker" | "saga-worker" = "resumable-worker") {
    super(`processes/programs/${program}`, options);
    this.ready = this.told((message) => message);
  }
}
