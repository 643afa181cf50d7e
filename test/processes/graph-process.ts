/** Worker processes that execute the nodes of graphs and note each execution in a file, to be killed. */
import { LibraryProcess } from "../support/library-process.js";

/** See programs/graph-worker.mjs. */
export interface GraphProcessOptions {
  readonly url: string;
  readonly ledger: string;
  readonly lease: number;
  readonly concurrency: number;
  /** The first execution of this node never ends; only a kill lets the next one begin. */
  readonly stuckNumber: number | null;
}

export class GraphProcess extends LibraryProcess {
  /** The id of its worker, once it works. */
  readonly ready: Promise<string>;

  constructor(options: GraphProcessOptions) {
    super("processes/programs/graph-worker", options);
    this.ready = this.told(({ workerId }: { readonly workerId: string }) => workerId);
  }
}
