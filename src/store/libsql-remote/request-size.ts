/** Splits statements into requests that the server accepts, and replaces values that it would refuse. */
import { StoreError } from "../../core/errors/errors.js";
import type { Statement, Value } from "./driver.js";

/**
 * sqld accepts messages of up to 16 MiB over a web socket and drops the connection, without an error, for a larger one.
 * The store would take that for a lost connection, and its callers would repeat the request forever.
 */
const maxRequestBytes = 15 * 1024 * 1024;

/** A character becomes at most six bytes (\u0000), so a request with fewer characters than this always fits. */
const safeRequestLength = maxRequestBytes / 6;

/** Returns the statements in as few requests as possible; usually one, unless there are megabytes of data. */
export function splitIntoRequests(statements: readonly Statement[]): readonly (readonly Statement[])[] {
  if (statements.reduce((sum, statement) => sum + estimateLength(statement), 0) < safeRequestLength)
    return [statements];
  const parts: Statement[][] = [];
  let remainingBytes = 0;
  for (const statement of statements) {
    const bytes = requestBytesOf(statement);
    if (bytes > maxRequestBytes) {
      throw new StoreError(
        `A statement of ${bytes} bytes is larger than a libSQL server accepts (16 MiB). Store the data elsewhere and pass a reference to it.`,
        { transient: false },
      );
    }
    if (bytes > remainingBytes) {
      parts.push([]);
      remainingBytes = maxRequestBytes;
    }
    parts.at(-1)?.push(statement);
    remainingBytes -= bytes;
  }
  return parts;
}

/** The protocol's bytes around a statement and its values in a request. */
const overheadBytes = 200;

const estimateLength = ({ sql, args }: Statement): number =>
  args.reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? value.length : 40),
    overheadBytes + sql.length,
  );

const requestBytesOf = ({ sql, args }: Statement): number =>
  args.reduce<number>(
    (sum, value) => sum + 40 + (typeof value === "string" ? Buffer.byteLength(JSON.stringify(value)) : 0),
    overheadBytes + Buffer.byteLength(JSON.stringify(sql)),
  );

/** Node has these methods since version 20, but the types of ES2023 lack them. */
type WellFormed = string & { isWellFormed(): boolean; toWellFormed(): string };

/** Half of a surrogate pair becomes U+FFFD: as invalid JSON it would make the server close the connection. */
export const toSendable = (value: Value): Value =>
  typeof value !== "string" || (value as WellFormed).isWellFormed() ? value : (value as WellFormed).toWellFormed();
