/** Refuses requests that a foreign web page makes in a user's browser, and requests for a host that is not ours. */
import { InvalidInputError } from "../core/errors/errors.js";
import { HttpError } from "./problem.js";

export interface OriginRules {
  /** The hosts that are served, such as "ops.example.com"; null: all, except that without `authorize` only loopback is. */
  readonly hosts: ReadonlySet<string> | null;
  /** Origins of other web pages that may use the API. */
  readonly origins: ReadonlySet<string>;
  /** Whether a user's program decides who is let in. Without that, only clients on this machine are. */
  readonly isAuthorized: boolean;
}

/** @throws InvalidInputError if a host or an origin could never match */
export function originRules(options: {
  readonly hosts?: readonly string[] | undefined;
  readonly origins?: readonly string[] | undefined;
  readonly authorize?: unknown;
}): OriginRules {
  const { hosts, origins = [] } = options;
  return {
    hosts: hosts === undefined ? null : new Set(hosts.map(checkHostOption)),
    origins: new Set(origins.map(checkOriginOption)),
    isAuthorized: options.authorize !== undefined,
  };
}

function checkHostOption(host: string): string {
  if (/^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i.test(host)) return host.toLowerCase();
  throw new InvalidInputError(`hosts has names such as "ops.example.com", not ${JSON.stringify(host)}.`);
}

function checkOriginOption(origin: string): string {
  if (originOf(origin) === origin) return origin;
  throw new InvalidInputError(
    `origins has origins as browsers send them, such as "https://ops.example.com", not ${JSON.stringify(origin)}.`,
  );
}

/**
 * @param remoteAddress the address of the client, if the server knows it
 * @throws HttpError 403
 */
export function checkHost(url: URL, headers: Headers, remoteAddress: string | undefined, rules: OriginRules): void {
  if (rules.hosts !== null && !rules.hosts.has(url.hostname) && !rules.hosts.has(url.host))
    throw new HttpError(403, "FOREIGN_HOST", "This host is not among those that are served.");
  if (rules.isAuthorized) return;
  // A page of another site can have its name resolve to this machine (DNS rebinding), but then its Host is foreign.
  if (!isLoopbackHost(url.hostname))
    throw new HttpError(403, "FOREIGN_HOST", "Without `authorize`, only localhost is served; set `authorize`.");
  // Behind a proxy every client comes from this machine.
  if (forwardingHeaders.some((name) => headers.has(name)))
    throw new HttpError(403, "FORBIDDEN", "Behind a proxy, `authorize` must decide who is let in.");
  if (remoteAddress === undefined)
    throw new HttpError(
      403,
      "FORBIDDEN",
      "Without `authorize`, only clients on this machine are let in, and this server does not tell where a request comes from; set `authorize`, or serve with nodeListener().",
    );
  if (!isLoopbackAddress(remoteAddress))
    throw new HttpError(403, "FORBIDDEN", "Without `authorize`, only clients on this machine are let in.");
}

const forwardingHeaders = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via"];

const isLoopbackHost = (hostname: string) =>
  hostname === "localhost" || hostname.endsWith(".localhost") || isLoopbackAddress(hostname.replace(/^\[|\]$/g, ""));

const isLoopbackAddress = (address: string) =>
  address === "::1" || /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(address);

/** Whether a person follows a link: the answer is shown, and no script of another page can read it. */
export const isNavigation = (headers: Headers): boolean =>
  headers.get("sec-fetch-mode") === "navigate" && headers.get("sec-fetch-dest") === "document";

/** @throws HttpError 403 if a web page of another origin has made the request */
export function checkOrigin(url: URL, headers: Headers, rules: OriginRules): void {
  const origin = headers.get("origin");
  if (origin !== null && rules.origins.has(origin)) return;
  const site = headers.get("sec-fetch-site");
  // Browsers set this header, and no script can: it is better than a comparison of hosts, which a proxy may change.
  if (site === "same-origin" || site === "none") return;
  const refused = () =>
    new HttpError(403, "FOREIGN_ORIGIN", "Web pages of this origin may not use the API; see the option `origins`.");
  if (site !== null) throw refused();
  if (origin === null) return;
  if (origin !== `${url.protocol}//${url.host}` && hostOf(origin) !== url.host) throw refused();
}

const hostOf = (origin: string): string | null => urlOf(origin)?.host ?? null;
const originOf = (origin: string): string | null => urlOf(origin)?.origin ?? null;

function urlOf(text: string): URL | null {
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** The headers that let a page of an allowed origin read the answer. */
export function corsHeaders(headers: Headers, rules: OriginRules): Record<string, string> {
  const origin = headers.get("origin");
  if (origin === null || !rules.origins.has(origin)) return {};
  return {
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Credentials": "true",
    Vary: "Origin",
  };
}

/** The answer to the question of a browser whether a page of an allowed origin may send a request. */
export const preflightHeaders = {
  "Access-Control-Allow-Methods": "GET, POST, PUT, DELETE",
  "Access-Control-Allow-Headers": "Content-Type, Authorization, Idempotency-Key, Last-Event-ID",
  "Access-Control-Max-Age": "600",
};
