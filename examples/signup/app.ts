/** The application around a signup, with small fakes: its table of users, and the mail that it sends. */
import { Effects } from "../effects.js";

export interface User {
  readonly id: string;
  readonly email: string;
  readonly onboardingCompleted: boolean;
}

class Users {
  readonly #rows = new Map<string, User>();

  async find(id: string): Promise<User | undefined> {
    return this.#rows.get(id);
  }

  async update(id: string, change: Partial<User>): Promise<void> {
    const user = this.#rows.get(id);
    if (user === undefined) throw new Error(`There is no user ${id}.`);
    this.#rows.set(id, { ...user, ...change });
  }

  async delete(id: string): Promise<void> {
    this.#rows.delete(id);
  }

  replaceAll(users: readonly User[]): void {
    this.#rows.clear();
    for (const user of users) this.#rows.set(user.id, user);
  }
}

class Mailer {
  readonly effects = new Effects<string>();

  async welcome(key: string, user: User): Promise<void> {
    this.effects.once(key, `welcome to ${user.email}`);
  }

  async remind(key: string, user: User): Promise<void> {
    this.effects.once(key, `reminder to ${user.email}`);
  }
}

export const users = new Users();
export const mailer = new Mailer();
