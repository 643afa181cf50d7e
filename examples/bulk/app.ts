/** The application around a campaign, with small fakes: its tables, and the mail that it sends. */
import { Effects } from "../effects.js";

export interface Campaign {
  readonly id: string;
  readonly status: "draft" | "sending" | "sent";
  readonly subscribers: number;
}

export interface Subscriber {
  readonly id: number;
  readonly email: string;
}

class Campaigns {
  readonly #rows = new Map<string, Campaign>();

  async find(id: string): Promise<Campaign | undefined> {
    return this.#rows.get(id);
  }

  async update(campaign: Campaign, change: Partial<Campaign>): Promise<void> {
    this.save({ ...campaign, ...change });
  }

  save(campaign: Campaign): void {
    this.#rows.set(campaign.id, campaign);
  }
}

class Subscribers {
  /** SELECT … WHERE campaign_id = ? AND id > ? ORDER BY id LIMIT ?. The ids have gaps, as ids do. */
  async after(id: number | null, limit: number, { subscribers }: Campaign): Promise<Subscriber[]> {
    const rows = Array.from({ length: subscribers }, (_, index) => row((index + 1) * 3));
    return rows.filter((subscriber) => id === null || subscriber.id > id).slice(0, limit);
  }
}

const row = (id: number): Subscriber => ({ id, email: `s${id}@example.com` });

class Mailer {
  readonly effects = new Effects<string>();
  /** The process that sends this mail dies afterwards: the mail is delivered, but the answer is lost. */
  stall: { readonly at: number; readonly reached: () => void } | null = null;

  async campaign(key: string, { email }: Subscriber): Promise<void> {
    this.effects.once(key, email);
    if (this.stall === null || this.effects.all.length !== this.stall.at) return;
    this.stall.reached();
    this.stall = null;
    await new Promise(() => {});
  }
}

/** The table of what a subscriber finds in the app. Its rows have a unique key, so that INSERT … ON CONFLICT DO NOTHING is safe. */
class Notifications {
  readonly effects = new Effects<number>();
  /** How many rows each statement had. */
  statements: number[] = [];

  async insertAll(campaign: Campaign, subscribers: readonly Subscriber[]): Promise<void> {
    this.statements.push(subscribers.length);
    for (const { id } of subscribers) this.effects.once(`${campaign.id}:${id}`, id);
  }
}

export const campaigns = new Campaigns();
export const subscribers = new Subscribers();
export const mailer = new Mailer();
export const notifications = new Notifications();
