/** The application around a ledger, with small fakes: its tables, and the mail that it sends. */
import { Effects } from "../effects.js";

interface Mutation {
  readonly id: number;
  readonly account: string;
  readonly cents: number;
}

export class Ledger {
  #mutations: readonly Mutation[] = [];
  /** The rows that were booked, by the key of the mutation. */
  readonly bookings = new Effects<Mutation>();
  /** A mutation that cannot be booked until an operator has corrected it. */
  garbled: number | null = null;
  /** The process that books this one hangs for ever. */
  stall: { readonly id: number; readonly reached: () => void } | null = null;

  reset(mutations: readonly Mutation[]): void {
    this.#mutations = mutations;
    this.bookings.forget();
    this.garbled = null;
    this.stall = null;
  }

  async pending(account: string): Promise<number[]> {
    return this.#mutations.filter((mutation) => mutation.account === account).map(({ id }) => id);
  }

  /** INSERT INTO bookings … ON CONFLICT DO NOTHING */
  async book(key: string, id: number): Promise<void> {
    const mutation = this.#mutations.find((one) => one.id === id);
    if (mutation === undefined || id === this.garbled) throw new RangeError(`Mutation ${id} has no amount.`);
    this.bookings.once(key, mutation);
    if (this.stall?.id !== id) return;
    this.stall.reached();
    this.stall = null;
    await new Promise(() => {});
  }

  /** SELECT sum(cents) FROM bookings WHERE account = ? */
  async balance(account: string): Promise<number> {
    const own = this.bookings.all.filter((mutation) => mutation.account === account);
    return own.reduce((sum, { cents }) => sum + cents, 0);
  }
}

/** The balances that the users are shown. */
export class Balances {
  readonly #rows = new Map<string, number>();

  async save(account: string, cents: number): Promise<void> {
    this.#rows.set(account, cents);
  }

  async of(account: string): Promise<number | undefined> {
    return this.#rows.get(account);
  }
}

export class Mail {
  readonly effects = new Effects<string>();

  async send(key: string, text: string): Promise<void> {
    this.effects.once(key, text);
  }
}
