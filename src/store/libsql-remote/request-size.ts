/** How large a message to the server becomes, and values that it can be made of. */
import { StoreError } from "../../core/errors/errors.js";
import type { Statement, Value } from "./driver.js";

/**
 * sqld takes messages of up to 16 MiB over a web socket, and drops the connection without a word when there is more. That
 * would look like a lost answer, and be repeated for ever.
 */
const maxRequestBytes = 15 * 1024 * 1024;

/** Each character becomes six bytes at most (\u0000), so what is shorter than this always fits. */
const safeRequestLength = maxRequestBytes / 6;

/** The statements in as few parts as can be sent. One part, unless there are megabytes of data. */
export function splitIntoRequests(statements: readonly Statement[]): readonly (readonly Statement[])[] {
  if (statements.reduce((sum, statement) => sum + estimateLength(statement), 0) < safeRequestLength)
    return [statements];
  const parts: Statement[][] = [];
  let remainingBytes = 0;
  for (const statement of statements) {
    const bytes = requestBytesOf(statement);
    if (bytes > maxRequestBytes) {
      throw new StoreError(
        `A statement of ${bytes} bytes is more than a libSQL server takes (16 MiB). Keep the data elsewhere and pass a reference to it.`,
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

/** What surrounds a statement and its values in a message. */
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

/** Since Node 20; not in the types of ES2023. */
type WellFormed = string & { isWellFormed(): boolean; toWellFormed(): string };

/** Half of a surrogate pair is no JSON for the server, which would close the connection; other databases get U+FFFD, too. */
export const toSendable = (value: Value): Value =>
  typeof value !== "string" || (value as WellFormed).isWellFormed() ? value : (value as WellFormed).toWellFormed();
