/** Parses the URL of a libSQL database file. */
import { fileURLToPath } from "node:url";
import { InvalidInputError } from "../../core/errors/errors.js";
import { type DatabaseLocation, locationOfPath } from "../sqlite/open.js";

/** Accepts "libsql:./pawl.db", "libsql:///srv/pawl.db", "libsql::memory:", and the same with "file:". */
export function parseLibsqlLocation(url: string): DatabaseLocation {
  const [, scheme = "", rest = ""] = /^(libsql|file):(.*)$/is.exec(url) ?? [];
  if (scheme === "") throw new InvalidInputError('A libSQL URL begins with "libsql:" or "file:".');
  if (/^\/\/[^/]/.test(rest)) return throwHostNotAllowed(scheme);
  const path = scheme.toLowerCase() === "file" ? filePathOf(url, rest) : rest.replace(/^\/\//, "");
  return locationOfPath("libsql", path);
}

/** The error does not repeat the URL, which may contain a token. Servers are opened by store/libsql-remote. */
function throwHostNotAllowed(scheme: string): never {
  throw new InvalidInputError(
    `"${scheme}://" names a host, but a file must be on this machine: use "libsql:./pawl.db" or "file:./pawl.db", or "libsql://host" for a server.`,
  );
}

/** "file:" is a standard scheme: paths are percent-encoded, and "?" and "#" start parts that Pawl does not support. */
function filePathOf(url: string, rest: string): string {
  if (/[?#]/.test(rest)) {
    throw new InvalidInputError('A "file:" URL for Pawl consists of a path only; write "?" as "%3F" and "#" as "%23".');
  }
  try {
    return rest.startsWith("/") ? fileURLToPath(url) : decodeURIComponent(rest);
  } catch (cause) {
    throw new InvalidInputError(`"${url}" is not a valid file URL.`, { cause });
  }
}
