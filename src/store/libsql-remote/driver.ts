/**
 * The parts of `@libsql/client` that the store uses. The store loads only the package's clients for servers, which need
 * no native binary.
 */
import { StoreError } from "../../core/errors/errors.js";
import type { SqlRow } from "../sql/dialect.js";
import type { RemoteAddress } from "./address.js";

export type Value = string | number | bigint | boolean | null | Uint8Array | ArrayBuffer | Date;

export interface Statement {
  readonly sql: string;
  readonly args: readonly Value[];
}

export interface Result {
  readonly rows: readonly SqlRow[];
  readonly rowsAffected: number;
}

export interface RemoteTransaction {
  execute(statement: Statement): Promise<Result>;
  /** Stops at the first statement that fails. The error has the index of that statement as `statementIndex`. */
  batch(statements: readonly Statement[]): Promise<readonly Result[]>;
  executeMultiple(sql: string): Promise<void>;
  /** Closes the session on the server, which rolls the transaction back. */
  close(): void;
}

export interface RemoteClient {
  execute(statement: Statement): Promise<Result>;
  /** Executes the statements in one transaction. */
  batch(statements: readonly Statement[], mode: "write"): Promise<readonly Result[]>;
  transaction(mode: "write" | "read"): Promise<RemoteTransaction>;
  close(): void;
}

export type OpenClient = () => RemoteClient;

interface ClientModule {
  createClient(config: {
    readonly url: string;
    readonly authToken?: string;
    readonly intMode: "number";
    readonly concurrency: number;
  }): unknown;
}

/** The store has its own limits; the driver's limit must not delay the probe that tests whether the server responds. */
const concurrency = 1_000;

export async function loadClient(address: Omit<RemoteAddress, "description">): Promise<OpenClient> {
  const { url, usesWebSocket, authToken } = address;
  const { createClient } = await importClient(usesWebSocket);
  const token = authToken === undefined ? {} : { authToken };
  return () => createClient({ url, ...token, intMode: "number", concurrency }) as RemoteClient;
}

async function importClient(usesWebSocket: boolean): Promise<ClientModule> {
  try {
    return usesWebSocket ? await import("@libsql/client/ws") : await import("@libsql/client/http");
  } catch (cause) {
    throw new StoreError(
      "A libSQL server needs the package @libsql/client, which is not installed; run: npm install @libsql/client",
      { transient: false, cause },
    );
  }
}
