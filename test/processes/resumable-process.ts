/** Worker processes that note what they do in a file, to be killed and stopped. */
import { LibraryProcess } from "../support/library-process.js";

/** See the programs. */
export interface ResumableProcessOptions {
  readonly url: string;
  readonly ledger: string;
  readonly lease: number;
  readonly checkpoint?: "awaited" | "relaxed";
}

export class ResumableProcess extends LibraryProcess {
  readonly ready: Promise<unknown>;

  constructor(options: ResumableProcessOptions, program: "resumable-worker" | "saga-worker" = "resumable-worker") {
    super(`processes/programs/${program}`, options);
    this.ready = this.told((message) => message);
  }
}
