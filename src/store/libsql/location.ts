/** From a URL to a file. A `libsql:` URL may also be the address of a server, which is refused. */
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "../../core/errors.js";
import { type Location, locatePath } from "../sqlite/open.js";

/** "libsql:./pawl.db", "libsql:///srv/pawl.db", "libsql::memory:", and the same with "file:". */
export function locateLibsql(url: string): Location {
  const [, scheme = "", rest = ""] = /^(libsql|file):(.*)$/is.exec(url) ?? [];
  if (scheme === "") throw new InvalidInputError('A libSQL URL begins with "libsql:" or "file:".');
  if (/^\/\/[^/]/.test(rest)) return refuseHost(scheme);
  const path = scheme.toLowerCase() === "file" ? pathOf(url, rest) : rest.replace(/^\/\//, "");
  return locatePath("libsql", path);
}

/**
 * The library can talk to a server, but the store is made for a database that is a function call away: the event loop
 * would stand still for a round trip per statement, a commit is many of them, and what wakes other processes is a file.
 * The address is not repeated in the error: it may hold a token.
 */
function refuseHost(scheme: string): never {
  throw new InvalidInputError(
    `"${scheme}://" names a host, but Pawl works with libSQL on files of this machine only: "libsql:./pawl.db" or "file:./pawl.db".`,
  );
}

/** Unlike the others this is a scheme with a standard: an absolute one is percent-encoded, and has parts after the path. */
function pathOf(url: string, rest: string): string {
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
