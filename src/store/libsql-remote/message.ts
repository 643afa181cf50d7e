/** How large a message to the server becomes, and values that it can be made of. */
import { StoreError } from "../../core/errors/errors.js";
import type { Statement, Value } from "./driver.js";

/**
 * sqld takes messages of up to 16 MiB over a web socket, and drops the connection without a word when there is more. That
 * would look like a lost answer, and be repeated for ever.
 */
const mostBytes = 15 * 1024 * 1024;

/** Each character becomes six bytes at most (\u0000), so what is shorter than this always fits. */
const surelyFits = mostBytes / 6;

/** The statements in as few parts as can be sent. One part, unless there are megabytes of data. */
export function inMessages(statements: readonly Statement[]): readonly (readonly Statement[])[] {
  if (statements.reduce((sum, statement) => sum + lengthOf(statement), 0) < surelyFits) return [statements];
  const parts: Statement[][] = [];
  let room = 0;
  for (const statement of statements) {
    const bytes = bytesOf(statement);
    if (bytes > mostBytes) {
      throw new StoreError(
        `A statement of ${bytes} bytes is more than a libSQL server takes (16 MiB). Keep the data elsewhere and pass a reference to it.`,
        { transient: false },
      );
    }
    if (bytes > room) {
      parts.push([]);
      room = mostBytes;
    }
    parts.at(-1)?.push(statement);
    room -= bytes;
  }
  return parts;
}

/** What surrounds a statement and its values in a message. */
const overhead = 200;

const lengthOf = ({ sql, args }: Statement): number =>
  args.reduce<number>((sum, value) => sum + (typeof value === "string" ? value.length : 40), overhead + sql.length);

const bytesOf = ({ sql, args }: Statement): number =>
  args.reduce<number>(
    (sum, value) => sum + 40 + (typeof value === "string" ? Buffer.byteLength(JSON.stringify(value)) : 0),
    overhead + Buffer.byteLength(JSON.stringify(sql)),
  );

/** Since Node 20; not in the types of ES2023. */
type WellFormed = string & { isWellFormed(): boolean; toWellFormed(): string };

/** Half of a surrogate pair is no JSON for the server, which would close the connection; other databases get U+FFFD, too. */
export const sendable = (value: Value): Value =>
  typeof value !== "string" || (value as WellFormed).isWellFormed() ? value : (value as WellFormed).toWellFormed();
