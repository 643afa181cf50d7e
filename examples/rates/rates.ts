/**
 * Copies the items of an API as fast as its limits allow. When the API refuses, the run is parked until it may ask
 * again: no worker waits meanwhile.
 */
import { Workflow } from "pawl";
import { copy, externalApi } from "./api.js";

export class ApiSync extends Workflow {
  static {
    this.resumableStep("sync_external_api", async (_w, iter) => {
      for (let page: number = iter.cursor ?? 1; ; page += 1) {
        const answer = await externalApi.fetch({ page });

        // Another execution requests the same page again when the time has come.
        if (answer.kind === "rate limited") return iter.skipTo(page, { wait: answer.retryAfter });

        if (answer.items.length === 0) return;
        for (const item of answer.items) await copy.store(item);
        await iter.set(page + 1);
      }
    });
  }
}
