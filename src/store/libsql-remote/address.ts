/** Parses the URL of a libSQL server (sqld, Turso). */
import { InvalidInputError } from "../../core/errors/errors.js";

export interface RemoteAddress {
  /** The URL that the driver connects to: `ws`, `wss`, `http` or `https`, without parameters. */
  readonly url: string;
  readonly usesWebSocket: boolean;
  readonly authToken: string | undefined;
  /** What error messages call the server. */
  readonly description: string;
}

/** Whether the URL names a server. `libsql:./file`, `libsql:///file` and `file:` name files. */
export const isRemoteUrl = (url: string): boolean => /^(https?:|wss?:|libsql:\/\/[^/])/i.test(url);

/**
 * `libsql:` means a web socket with TLS (`?tls=0`: without TLS). The driver's default is HTTP, where a batch takes
 * twice as long (1.9 ms instead of 0.8 ms on one machine). The token is an option or the parameter `authToken`, as in
 * `@libsql/client`. No error repeats the URL, which may contain the token.
 */
export function parseRemoteAddress(urlText: string, tokenOption: string | undefined): RemoteAddress {
  const url = parseUrl(urlText);
  const scheme = url.protocol.slice(0, -1).toLowerCase();
  assertHostIsNotPath(url, scheme);
  if (url.username !== "" || url.password !== "") {
    throwInvalidUrl(
      "has a user or a password; a libSQL server uses tokens: connect(url, { authToken }), or ?authToken=… in the URL",
    );
  }
  if (url.hash !== "") throwInvalidUrl('has a fragment after "#", which a database URL cannot have');
  const { authToken, tls } = parametersOf(url, scheme);
  if (tokenOption && authToken && tokenOption !== authToken) {
    throwInvalidUrl("has another token than the option authToken; pass only one of them");
  }
  const socketScheme = scheme === "libsql" ? (tls ? "wss" : "ws") : scheme;
  const hostAndPath = `${url.host}${url.pathname}`.replace(/\/$/, "");
  return {
    url: `${socketScheme}://${hostAndPath}`,
    usesWebSocket: socketScheme.startsWith("ws"),
    authToken: tokenOption || authToken || undefined,
    description: `libsql ${hostAndPath}`,
  };
}

function parseUrl(urlText: string): URL {
  try {
    return new URL(urlText);
  } catch {
    return throwInvalidUrl("is not valid; use a URL such as libsql://name.turso.io or http://localhost:8080");
  }
}

/** A user who writes "libsql://./pawl.db" means a path, but the URL parser takes "." for the host. */
function assertHostIsNotPath({ hostname }: URL, scheme: string): void {
  if (/^\.*$|^~/.test(hostname)) {
    throwInvalidUrl(`names no host; for a file on this machine, write it without slashes: "${scheme}:./pawl.db"`);
  }
}

function parametersOf(url: URL, scheme: string): { readonly authToken: string | undefined; readonly tls: boolean } {
  let authToken: string | undefined;
  let tls = true;
  for (const [name, value] of url.searchParams) {
    if (name === "authToken") authToken = value;
    else if (name === "tls" && scheme === "libsql" && /^[01]$/.test(value)) tls = value === "1";
    else throwInvalidUrl(`has the parameter "${name}"; only authToken is supported, and tls=0 with libsql:`);
  }
  return { authToken, tls };
}

function throwInvalidUrl(problem: string): never {
  throw new InvalidInputError(`The URL of the libSQL server ${problem}.`);
}
