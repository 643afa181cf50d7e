/**
 * A campaign to many subscribers. The steps that iterate over them remember their position: whatever happens in the
 * middle, the next worker continues with the next subscriber.
 */
import { Workflow } from "pawl";
import { type Campaign, campaigns, mailer, notifications, subscribers } from "./app.js";

export class BulkNotificationWorkflow extends Workflow<Campaign> {
  static readonly heroType = "Campaign";
  static loadHero = (id: string) => campaigns.find(id);

  static {
    this.step("prepare_campaign", (w) => campaigns.update(w.hero, { status: "sending" }));

    // One mail at a time; after twenty, other runs get a turn before this one continues.
    this.resumableStep("send_notifications", { maxIterations: 20 }, async (w, iter) => {
      iter.total(w.hero.subscribers);
      await iter.records({ fetch: w.subscribersAfter, key: "id" }, (subscriber) =>
        mailer.campaign(`${w.idempotencyKey}:${subscriber.id}`, subscriber),
      );
    });

    // The same subscribers, ten rows in one statement.
    this.resumableStep("bulk_insert_notifications", async (w, iter) => {
      await iter.batches({ fetch: w.subscribersAfter, key: "id", size: 10 }, (batch) =>
        notifications.insertAll(w.hero, batch),
      );
    });

    this.step("finalize", (w) => campaigns.update(w.hero, { status: "sent" }));
  }

  readonly subscribersAfter = (id: number | null, limit: number) => subscribers.after(id, limit, this.hero);
}
