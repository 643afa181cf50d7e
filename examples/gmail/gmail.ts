/**
 * Copies a mailbox, page by page. The cursor is the token that Google gives for the next page; what is in it is not our
 * business.
 */
import { Workflow } from "pawl";
import { archive, gmail, type Mailbox } from "./google.js";

export class GmailSync extends Workflow<Mailbox> {
  static readonly heroType = "Mailbox";
  static loadHero = (id: string): Mailbox => ({ id });

  static {
    this.resumableStep("sync_gmail", async (w, iter) => {
      for (;;) {
        const { messages, nextPageToken } = await gmail.listMessages(w.hero, { pageToken: iter.cursor });

        // Google has nothing for us yet on this page: let others have the worker before we ask for the next.
        if (messages.length === 0 && nextPageToken !== null) iter.skipTo(nextPageToken);

        for (const message of messages) await archive.store(w.hero, message);

        if (nextPageToken === null) return;
        await iter.set(nextPageToken);
      }
    });
  }
}
