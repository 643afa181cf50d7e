/** The address of a libSQL server (sqld, Turso), as its users write it. */
import { InvalidInputError } from "../../core/errors/errors.js";

export interface RemoteAddress {
  /** What the driver connects to: `ws`, `wss`, `http` or `https`, without parameters. */
  readonly url: string;
  readonly usesWebSocket: boolean;
  readonly authToken: string | undefined;
  /** For people. */
  readonly description: string;
}

/** Whether the URL names a server. `libsql:./file`, `libsql:///file` and `file:` name files. */
export const isRemoteUrl = (url: string): boolean => /^(https?:|wss?:|libsql:\/\/[^/])/i.test(url);

/**
 * `libsql:` is a web socket with TLS (without: `?tls=0`), where the driver by itself would use HTTP: a batch takes half as
 * long there (0.8 ms instead of 1.9 ms on one machine). The token is an option or the parameter `authToken`, as in
 * `@libsql/client`. No message repeats the URL, which may hold the token.
 */
export function parseRemoteAddress(urlText: string, tokenOption: string | undefined): RemoteAddress {
  const url = parseUrl(urlText);
  const scheme = url.protocol.slice(0, -1).toLowerCase();
  assertHostIsNotPath(url, scheme);
  if (url.username !== "" || url.password !== "") {
    throwInvalidUrl(
      "has a user or a password; a libSQL server knows tokens: connect(url, { authToken }), or ?authToken=… in the URL",
    );
  }
  if (url.hash !== "") throwInvalidUrl('has a part behind "#", which means nothing to a database');
  const { authToken, tls } = parametersOf(url, scheme);
  if (tokenOption && authToken && tokenOption !== authToken) {
    throwInvalidUrl("has another token than the option authToken; give one of them");
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
    return throwInvalidUrl("cannot be read; it looks like libsql://name.turso.io or http://localhost:8080");
  }
}

/** "libsql://./pawl.db" was meant as a path, and would be a host named ".". */
function assertHostIsNotPath({ hostname }: URL, scheme: string): void {
  if (/^\.*$|^~/.test(hostname)) {
    throwInvalidUrl(`names no host; a file of this machine is written without slashes: "${scheme}:./pawl.db"`);
  }
}

function parametersOf(url: URL, scheme: string): { readonly authToken: string | undefined; readonly tls: boolean } {
  let authToken: string | undefined;
  let tls = true;
  for (const [name, value] of url.searchParams) {
    if (name === "authToken") authToken = value;
    else if (name === "tls" && scheme === "libsql" && /^[01]$/.test(value)) tls = value === "1";
    else
      throwInvalidUrl(
        `has the parameter "${name}"; those of a libSQL server are authToken, and for libsql: also tls=0`,
      );
  }
  return { authToken, tls };
}

function throwInvalidUrl(problem: string): never {
  throw new InvalidInputError(`The URL of the libSQL server ${problem}.`);
}
