/**
 * Detects a pooler that executes each transaction in any of its server sessions (PgBouncer in transaction mode,
 * Supavisor, RDS Proxy). Two statements on one connection may then run in two sessions: a prepared statement is missing
 * or belongs to another client, a `SET` remains in effect in a session that other applications use, and the
 * notifications of a `LISTEN` go to another client.
 */
import { InvalidInputError } from "../../../core/errors/errors.js";
import type { PgResult, PgStandaloneClient } from "./driver.js";

/** Finds out whether connections share sessions of the server. */
type ProbeSessionSharing = () => Promise<boolean>;

export class PoolerDetector {
  readonly #probe: ProbeSessionSharing;
  readonly #onDetected: (sign: string) => void;
  #isPooled: boolean;
  #isCertain: boolean;
  #detecting: Promise<void> | null = null;

  /** @param onDetected called once, when a pooler is detected that the setting did not announce */
  constructor(setting: boolean | "auto", probe: ProbeSessionSharing, onDetected: (sign: string) => void) {
    this.#probe = probe;
    this.#onDetected = onDetected;
    this.#isPooled = setting === true;
    this.#isCertain = setting !== "auto";
  }

  get isPooled(): boolean {
    return this.#isPooled;
  }

  /** Whether the answer is known, from the setting or by detection. Until then every new connection is checked. */
  get isCertain(): boolean {
    return this.#isCertain;
  }

  /**
   * Called when the session that answers on a new connection has another process id than the server sent when the
   * connection was opened. That happens behind every pooler, also behind one that keeps a session for each connection;
   * the probe with two connections finds out whether sessions are shared.
   */
  detect(): Promise<void> {
    this.#detecting ??= this.#detect();
    return this.#detecting;
  }

  async #detect(): Promise<void> {
    const areSessionsShared = await this.#probe();
    if (this.#isCertain) return;
    if (areSessionsShared) this.markPooled("its connections share sessions of the server");
    else this.#isCertain = true;
  }

  /** Called when something happened that only a pooler causes. */
  markPooled(sign: string): void {
    if (this.#isPooled) return;
    this.#isPooled = true;
    this.#isCertain = true;
    this.#onDetected(sign);
  }

  /** Whether only a pooler can have caused this error. Nothing was executed then, so the statement may be repeated. */
  isPoolerError(error: unknown): boolean {
    return !this.#isCertain && /^(42P05|26000)$/.test(codeOf(error));
  }
}

const codeOf = (error: unknown): string => String((error as { readonly code?: unknown } | null)?.code ?? "");

const probeRounds = 5;
const selectPid = "SELECT pg_backend_pid() AS pid";

/**
 * Opens two connections and compares the process ids of their sessions, with a transaction open on the second.
 * Connections with sessions of their own never show the same id, and never a new one. A pooler that shares sessions
 * hands out the session that was used last, or the next one in turn, so usually the first round shows it. If the probe
 * fails, for example because the second connection gets no session, the result is true.
 */
export async function sharesSessions(openConnection: () => PgStandaloneClient): Promise<boolean> {
  const clients = [openConnection(), openConnection()] as const;
  const [first, second] = clients;
  for (const client of clients) client.on("error", () => {});
  try {
    await Promise.all(clients.map((client) => client.connect()));
    for (let round = 0; round < probeRounds; round += 1) {
      const firstPid = pidIn(await first.query({ text: selectPid }));
      const results = (await second.query({ text: `BEGIN; ${selectPid}` })) as unknown as readonly PgResult[];
      if (pidIn(results.at(-1)) === firstPid || pidIn(await first.query({ text: selectPid })) !== firstPid) return true;
      await second.query({ text: "ROLLBACK" });
    }
    return false;
  } catch {
    return true;
  } finally {
    for (const client of clients) client.end().catch(() => {});
  }
}

const pidIn = (result: PgResult | undefined): number => Number(result?.rows[0]?.pid);

/** Parameters of a URL that `pg` sends when it connects and that a pooler refuses. */
const startupParameters = ["options", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];

/**
 * The URL without the startup parameters, and the names of those that were removed.
 *
 * @throws InvalidInputError when one of them selects the schema: without it the tables would be created in another
 * schema
 */
export function withoutStartupParameters(
  url: string,
  schema: string | undefined,
): { readonly url: string; readonly removed: string[] } {
  const [baseUrl, query] = url.split("?") as [string, string | undefined];
  const parameters = new URLSearchParams(query);
  const removed = startupParameters.filter((name) => parameters.has(name));
  if (removed.length === 0) return { url, removed };
  const searchPath = /search_path\s*=\s*([^\s]+)/.exec(parameters.get("options") ?? "")?.[1];
  if (searchPath !== undefined && schema === undefined) {
    throw new InvalidInputError(
      `"search_path=${searchPath}" in the URL cannot be sent through a pooler: use connect(url, { schema: "${searchPath}" }), or --schema ${searchPath} on the command line.`,
    );
  }
  for (const name of removed) parameters.delete(name);
  const remainingQuery = parameters.toString();
  return { url: remainingQuery === "" ? baseUrl : `${baseUrl}?${remainingQuery}`, removed };
}
