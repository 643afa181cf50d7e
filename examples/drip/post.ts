import { Effects } from "../effects.js";

/** A mail service, as far as a campaign needs one. */
export class Post {
  readonly effects = new Effects<string>();

  async send(key: string, to: string, mail: string): Promise<void> {
    this.effects.once(key, `${mail} to ${to}`);
  }
}
