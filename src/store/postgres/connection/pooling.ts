/**
 * Whether a pooler stands between this process and the server that gives each transaction any of its sessions (PgBouncer in
 * transaction mode, Supavisor, RDS Proxy). Then two statements that are sent on one connection may meet two sessions: a
 * prepared statement is missing or another's, a `SET` stays behind in a session that other applications use, and what a
 * `LISTEN` would hear goes to another client.
 */
import { InvalidInputError } from "../../../core/errors/errors.js";
import type { PgLoneClient, PgResult } from "./driver.js";

/** Looks whether connections share sessions of the server. */
type Probe = () => Promise<boolean>;

export class Pooling {
  readonly #probe: Probe;
  readonly #onNoticed: (sign: string) => void;
  #isPooled: boolean;
  #isCertain: boolean;
  #deciding: Promise<void> | null = null;

  /** @param onNoticed called once, when it turns out that there is a pooler although nothing was said of one */
  constructor(given: boolean | "auto", probe: Probe, onNoticed: (sign: string) => void) {
    this.#probe = probe;
    this.#onNoticed = onNoticed;
    this.#isPooled = given === true;
    this.#isCertain = given !== "auto";
  }

  get isPooled(): boolean {
    return this.#isPooled;
  }

  /** Whether it was told, or has turned out. Until then every new connection is looked at. */
  get isCertain(): boolean {
    return this.#isCertain;
  }

  /**
   * The session that answered on a new connection is not the one that the connection was promised. That is so behind every
   * pooler, also behind one that keeps a session for each connection; two connections show which kind it is.
   */
  decide(): Promise<void> {
    this.#deciding ??= this.#decide();
    return this.#deciding;
  }

  async #decide(): Promise<void> {
    const shares = await this.#probe();
    if (this.#isCertain) return;
    if (shares) this.noticed("its connections share sessions of the server");
    else this.#isCertain = true;
  }

  /** Something happened that only a pooler does. */
  noticed(sign: string): void {
    if (this.#isPooled) return;
    this.#isPooled = true;
    this.#isCertain = true;
    this.#onNoticed(sign);
  }

  /** Whether this error of a statement of ours is such a sign. Nothing was executed, so the statement may be repeated. */
  isSign(error: unknown): boolean {
    return !this.#isCertain && /^(42P05|26000)$/.test(codeOf(error));
  }
}

const codeOf = (error: unknown): string => String((error as { readonly code?: unknown } | null)?.code ?? "");

const rounds = 5;
const askPid = "SELECT pg_backend_pid() AS pid";

/**
 * Two connections, of which the second is in a transaction while the first asks again. Sessions of their own never have
 * each other's process id, and never a new one. Poolers that share hand out the session that was used last, or the next
 * in turn, so the first round usually tells. When the second connection gets no session at all, they are shared as well
 * as one can know.
 */
export async function sharesSessions(open: () => PgLoneClient): Promise<boolean> {
  const clients = [open(), open()] as const;
  const [first, second] = clients;
  for (const client of clients) client.on("error", () => {});
  try {
    await Promise.all(clients.map((client) => client.connect()));
    for (let round = 0; round < rounds; round += 1) {
      const before = pidIn(await first.query({ text: askPid }));
      const results = (await second.query({ text: `BEGIN; ${askPid}` })) as unknown as readonly PgResult[];
      if (pidIn(results.at(-1)) === before || pidIn(await first.query({ text: askPid })) !== before) return true;
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

/** Parameters of a URL that `pg` sends when it connects, and that a pooler refuses. */
const startupParameters = ["options", "statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"];

/**
 * The URL without them, and their names.
 *
 * @throws InvalidInputError when one of them chooses the schema: without it the tables would be made elsewhere
 */
export function forPooler(url: string, schema: string | undefined): { readonly url: string; readonly left: string[] } {
  const [place, query] = url.split("?") as [string, string | undefined];
  const parameters = new URLSearchParams(query);
  const left = startupParameters.filter((name) => parameters.has(name));
  if (left.length === 0) return { url, left };
  const path = /search_path\s*=\s*([^\s]+)/.exec(parameters.get("options") ?? "")?.[1];
  if (path !== undefined && schema === undefined) {
    throw new InvalidInputError(
      `"search_path=${path}" in the URL cannot be sent through a pooler: use connect(url, { schema: "${path}" }), or --schema ${path} on the command line.`,
    );
  }
  for (const name of left) parameters.delete(name);
  const rest = parameters.toString();
  return { url: rest === "" ? place : `${place}?${rest}`, left };
}
