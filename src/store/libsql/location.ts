/** From a URL to a file. */
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "../../core/errors/errors.js";
import { type DatabaseLocation, locationOfPath } from "../sqlite/open.js";

/** "libsql:./pawl.db", "libsql:///srv/pawl.db", "libsql::memory:", and the same with "file:". */
export function parseLibsqlLocation(url: string): DatabaseLocation {
  const [, scheme = "", rest = ""] = /^(libsql|file):(.*)$/is.exec(url) ?? [];
  if (scheme === "") throw new InvalidInputError('A libSQL URL begins with "libsql:" or "file:".');
  if (/^\/\/[^/]/.test(rest)) return throwHostNotAllowed(scheme);
  const path = scheme.toLowerCase() === "file" ? filePathOf(url, rest) : rest.replace(/^\/\//, "");
  return locationOfPath("libsql", path);
}

/** The address of a server is another store's (libsql-remote). It is not repeated in the error: it may hold a token. */
function throwHostNotAllowed(scheme: string): never {
  throw new InvalidInputError(
    `"${scheme}://" names a host, but this is for files of this machine: "libsql:./pawl.db" or "file:./pawl.db". A server is "libsql://host".`,
  );
}

/** Unlike the others this is a scheme with a standard: an absolute one is percent-encoded, and has parts after the path. */
function filePathOf(url: string, rest: string): string {
  if (/[?#]/.test(rest)) {
    throw new InvalidInputError(
      'A "file:" URL for Pawl is a path and nothing else; write "?" as "%3F" and "#" as "%23".',
    );
  }
  try {
    return rest.startsWith("/") ? fileURLToPath(url) : decodeURIComponent(rest);
  } catch (cause) {
    throw new InvalidInputError(`"${url}" is not a valid file URL.`, { cause });
  }
}
