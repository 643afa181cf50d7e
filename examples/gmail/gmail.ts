/** Copies a mailbox, page by page. The cursor is Google's opaque token for the next page. */
import { Workflow } from "pawl";
import { archive, gmail, type Mailbox } from "./google.js";

export class GmailSync extends Workflow<Mailbox> {
  static readonly heroType = "Mailbox";
  static loadHero = (id: string): Mailbox => ({ id });

  static {
    this.resumableStep("sync_gmail", async (w, iter) => {
      for (;;) {
        const { messages, nextPageToken } = await gmail.listMessages(w.hero, { pageToken: iter.cursor });

        // This page is empty, so other runs get a turn before the next page is requested.
        if (messages.length === 0 && nextPageToken !== null) iter.skipTo(nextPageToken);

        for (const message of messages) await archive.store(w.hero, message);

        if (nextPageToken === null) return;
        await iter.set(nextPageToken);
      }
    });
  }
}
