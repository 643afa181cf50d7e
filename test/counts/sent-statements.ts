/**
 * Counts what a store sends to its database, where it leaves the driver: every statement of every connection of this
 * process, including BEGIN and COMMIT. The settings that a connection makes once are not counted, because the number of
 * connections depends on timing; neither is the listening connection, whose cost belongs to an idle worker.
 */
import { createConnection } from "mysql2/promise";
import pg from "pg";
import { loadDriver } from "../../src/store/sqlite/driver.js";
import { type StoreKind, storeUrls } from "../support/databases.js";

export class SentStatements {
  readonly texts: string[] = [];
  /** What is sent over the wire at once: MySQL takes several statements in one packet. */
  packets = 0;
  /** Sent without an answer yet, or waiting for a connection. */
  pending = 0;

  add(...texts: readonly string[]): void {
    this.packets += 1;
    this.texts.push(...texts);
  }

  async until(answered: Promise<unknown>): Promise<void> {
    this.pending += 1;
    await answered.catch(() => {});
    this.pending -= 1;
  }

  clear(): void {
    this.texts.length = 0;
    this.packets = 0;
  }
}

const watched = new Map<StoreKind, Promise<SentStatements>>();

/** Counts from now on, for as long as the process lives. */
export function watchStatements(kind: StoreKind): Promise<SentStatements> {
  let sent = watched.get(kind);
  if (sent === undefined) watched.set(kind, (sent = watchDriver(kind)));
  return sent;
}

async function watchDriver(kind: StoreKind): Promise<SentStatements> {
  const sent = new SentStatements();
  if (kind === "postgres") watchPostgres(sent);
  if (kind === "mysql") await watchMysql(sent);
  if (kind === "sqlite") await watchSqlite(sent);
  return sent;
}

type Method = (this: object, ...args: any[]) => any;

/** Calls `before` with the arguments of the method, and `after` with its result. */
function wrap(owner: any, name: string, before: (self: object, args: any[]) => void, after?: (result: any) => void) {
  const real = owner[name] as Method;
  owner[name] = function (this: object, ...args: any[]) {
    before(this, args);
    const result = real.apply(this, args);
    after?.(result);
    return result;
  };
}

function watchPostgres(sent: SentStatements): void {
  const inUse = new WeakSet<object>();
  const listening = new WeakSet<object>();
  const note = (client: object, [query]: any[]) => {
    const text: string = query.text ?? query;
    if (text.startsWith("LISTEN ")) listening.add(client);
    // The first statement of a connection makes its settings.
    if (inUse.has(client) && !listening.has(client)) sent.add(text);
    inUse.add(client);
  };
  const wait = (result: unknown) => {
    if (result instanceof Promise) void sent.until(result);
  };
  wrap(pg.Client.prototype, "query", note, wait);
  wrap(pg.Pool.prototype, "connect", () => {}, wait);
}

async function watchMysql(sent: SentStatements): Promise<void> {
  const inUse = new WeakSet<object>();
  const waitFor = (args: any[]) => {
    const answered = args.at(-1) as Method;
    sent.pending += 1;
    args[args.length - 1] = function (this: object, ...answer: unknown[]) {
      sent.pending -= 1;
      return answered.apply(this, answer);
    };
  };
  const note = (connection: object, args: any[]) => {
    const text: string = args[0].sql ?? args[0];
    if (inUse.has(connection)) sent.add(...statementsIn(text));
    // The last statement that the store sends to a new connection.
    if (text.startsWith("SELECT @@max_allowed_packet")) inUse.add(connection);
    waitFor(args);
  };
  const probe = await createConnection({ uri: storeUrls().mysql });
  const classes = prototypesOf((probe as unknown as { connection: object }).connection);
  const owner = classes.find((prototype) => Object.hasOwn(prototype, "query"));
  wrap(owner, "query", note);
  wrap(owner, "execute", note);
  wrap(owner, "reset", (_, args) => {
    sent.add("RESET CONNECTION");
    waitFor(args);
  });
  await probe.end();
}

function prototypesOf(object: object): object[] {
  const prototype = Object.getPrototypeOf(object) as object | null;
  return prototype === null ? [] : [prototype, ...prototypesOf(prototype)];
}

/** Parts of a MariaDB block that are not statements of the store: error handlers, and the check whether to continue. */
const blockHead = /^BEGIN NOT ATOMIC (?:DECLARE EXIT HANDLER FOR \w+ BEGIN .*?; END; )+(?:IF NOT .*?; END IF; )?/s;

/** Splits at the semicolons that are not in a string. */
function statementsIn(text: string): string[] {
  const packet = blockHead.test(text) ? text.replace(blockHead, "").replace(/; END$/, "") : text;
  const pieces = packet.match(/'(?:[^'\\]|\\.|'')*'|;|[^';]+/gs) ?? [];
  const statements = [""];
  for (const piece of pieces) {
    if (piece === ";") statements.push("");
    else statements[statements.length - 1] += piece;
  }
  return statements;
}

/** Compares a number in shared memory. It takes no lock and reads no page, so it is not counted. */
const sharedMemoryRead = "PRAGMA data_version";

/** Both drivers are synchronous. Every statement of every connection goes through these methods of its class. */
async function watchSqlite(sent: SentStatements): Promise<void> {
  const { Database } = await loadDriver();
  const probe = new Database(":memory:");
  const note = (text: string) => {
    if (text !== sharedMemoryRead) sent.add(text);
  };
  const statement = Object.getPrototypeOf(probe.prepare("SELECT 1"));
  for (const name of ["run", "get", "all", "iterate"]) {
    wrap(statement, name, (self: { source?: string; sourceSQL?: string }) =>
      note(self.source ?? self.sourceSQL ?? "?"),
    );
  }
  wrap(Object.getPrototypeOf(probe), "exec", (_, [text]) => note(text));
  probe.close();
}
