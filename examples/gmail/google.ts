/**
 * A mailbox at Google, as a small fake: pages with opaque tokens, some of them empty. Also the destination of its
 * messages.
 */
import { Effects } from "../effects.js";

export interface Mailbox {
  readonly id: string;
}

interface Message {
  readonly id: string;
  readonly subject: string;
}

interface Page {
  readonly messages: readonly Message[];
  /** null on the last page. */
  readonly nextPageToken: string | null;
}

class Gmail {
  /** The subjects on each page. */
  pages: readonly (readonly string[])[] = [];
  /** The page that cannot be read at the moment. */
  broken: number | null = null;
  /** Which pages were read, in order. */
  read: number[] = [];

  async listMessages(_mailbox: Mailbox, { pageToken }: { readonly pageToken: string | null }): Promise<Page> {
    const index = pageToken === null ? 0 : this.pages.findIndex((_, page) => tokenOf(page) === pageToken);
    const subjects = this.pages[index];
    if (subjects === undefined) throw new Error(`400 Invalid pageToken "${pageToken}"`);
    if (index === this.broken) throw new Error("500 Backend Error");
    this.read.push(index);
    return {
      messages: subjects.map((subject) => ({ id: `message ${subject}`, subject })),
      nextPageToken: index + 1 < this.pages.length ? tokenOf(index + 1) : null,
    };
  }
}

/** The token does not reveal the position. */
export const tokenOf = (page: number) => Buffer.from(`page ${page} of this mailbox`).toString("base64url");

/** Stores a message once, by its id. */
class Archive {
  readonly effects = new Effects<string>();

  async store(_mailbox: Mailbox, { id, subject }: Message): Promise<void> {
    this.effects.once(id, subject);
  }
}

export const gmail = new Gmail();
export const archive = new Archive();
