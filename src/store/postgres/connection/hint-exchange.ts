/** Hints of this process and of the others: LISTEN and NOTIFY, which a pooler does not pass on. */
import { randomHex } from "../../../runtime/random-hex.js";
import type { Runtime } from "../../../runtime/runtime.js";
import type { Hint, StoreOptions } from "../../contract/store.js";
import { HintEmitter } from "../../shared/hint-emitter.js";
import type { CallerTransaction } from "../transaction.js";
import type { Database } from "./database.js";
import type { PgModule } from "./driver.js";
import { Listener } from "./listener.js";
import { channelOf, encodeHints, Notifier } from "./notifier.js";

export interface HintExchangeParts {
  readonly runtime: Runtime;
  readonly pg: PgModule;
  readonly db: Database;
  readonly url: string;
  readonly schema: string;
  readonly options: StoreOptions;
  readonly onWarning: (message: string, error: unknown) => void;
}

export class HintExchange {
  readonly #parts: HintExchangeParts;
  readonly #channel: string;
  readonly #senderId: string;
  readonly #emitter = new HintEmitter();
  readonly #notifier: Notifier | null;
  #listener: Listener | null = null;
  #isClosed = false;

  constructor(parts: HintExchangeParts) {
    const { db, runtime, schema, options, onWarning } = parts;
    this.#parts = parts;
    this.#channel = channelOf(schema);
    this.#senderId = randomHex(runtime, 16);
    const write = (query: Parameters<Database["write"]>[0]) => db.write(query);
    this.#notifier =
      options.notify === false ? null : new Notifier(write, this.#channel, this.#senderId, onWarning, runtime);
    db.onPoolerDetected(() => this.#stopListening());
  }

  /** A LISTEN through a pooler receives no notifications, so behind a pooler the option `listenUrl` is needed. */
  get isCrossProcess(): boolean {
    const { db, options } = this.#parts;
    return this.#notifier !== null && (!db.isPooled || options.listenUrl !== undefined);
  }

  watch(listener: (hint: Hint) => void): () => void {
    if (this.isCrossProcess && !this.#isClosed) this.#listener ??= this.#listen();
    return this.#emitter.watch(listener);
  }

  /** Sends hints to this process at once, and to other processes through the server. */
  readonly emit = (hints: readonly Hint[]): void => {
    this.#emitter.emit(hints);
    this.#notifier?.enqueue(hints);
  };

  /** The server sends the notification when the caller commits, also to this process, which does not see the commit. */
  async notifyInTransaction(tx: CallerTransaction, hints: readonly Hint[]): Promise<void> {
    if (this.#notifier === null || hints.length === 0) return;
    await tx.query("SELECT pg_notify($1, $2)", [this.#channel, encodeHints(hints)]);
  }

  async stopReceiving(): Promise<void> {
    this.#isClosed = true;
    await this.#listener?.close();
  }

  /** Sends what `emit` has been given. */
  async flush(): Promise<void> {
    await this.#notifier?.flush();
  }

  /** Called when a pooler is detected: a listener that connects through it receives no notifications. */
  #stopListening(): void {
    if (this.isCrossProcess) return;
    void this.#listener?.close();
    this.#listener = null;
  }

  #listen(): Listener {
    const { runtime, pg, db, url, options, onWarning } = this.#parts;
    return new Listener({
      runtime,
      pg,
      connection: db.connectionConfig(options.listenUrl ?? url),
      channel: this.#channel,
      ownSenderId: this.#senderId,
      emit: (hints) => this.#emitter.emit(hints),
      reachability: db.reachability,
      deadline: db.deadline,
      onWarning,
    });
  }
}
