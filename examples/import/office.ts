/** The world around an import, as small fakes: files to read, a CRM to fill, mail to send. */
import { TransientError } from "pawl";
import { Effects } from "../effects.js";

export interface Customer {
  readonly email: string;
  readonly name: string;
}

export class Files {
  readonly #files = new Map<string, readonly string[]>();

  write(file: string, rows: readonly string[]): void {
    this.#files.set(file, rows);
  }

  async read(file: string): Promise<readonly string[]> {
    const rows = this.#files.get(file);
    if (rows === undefined) throw new Error(`There is no file ${file}.`);
    return rows;
  }
}

export class Crm {
  readonly effects = new Effects<Customer>();
  #refuseEvery = Number.POSITIVE_INFINITY;
  #requests = 0;

  /** Resets everything. From now on, every `refuseEvery`-th request is refused as one too many. */
  reset(refuseEvery = Number.POSITIVE_INFINITY): void {
    this.effects.forget();
    this.#refuseEvery = refuseEvery;
    this.#requests = 0;
  }

  async save(key: string, customer: Customer): Promise<string> {
    this.#requests += 1;
    if (this.#requests % this.#refuseEvery === 0) {
      throw new TransientError("429 Too Many Requests", { retryAfter: "10 minutes" });
    }
    this.effects.once(key, customer);
    return customer.email;
  }
}

export class Mail {
  readonly effects = new Effects<{ readonly to: string; readonly text: string }>();

  async send(key: string, to: string, text: string): Promise<void> {
    this.effects.once(key, { to, text });
  }
}
