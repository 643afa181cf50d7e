/** Serves a handler with Node's HTTP server, and with what is built on it, such as Express and Fastify. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { HttpHandler } from "./handler.js";
import { setRemoteAddress } from "./remote-address.js";

/** A request of Node, perhaps one whose body a framework has parsed already, or whose path it has shortened. */
type NodeRequest = IncomingMessage & { readonly body?: unknown };

/** Serves requests of Node's HTTP server. */
export type NodeListener = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Makes a listener for `http.createServer` of a handler.
 *
 * @example
 * ```ts
 * import { createServer } from "node:http";
 *
 * createServer(nodeListener(httpHandler(pawl))).listen(3000, "127.0.0.1");
 * ```
 */
export function nodeListener(handle: HttpHandler): NodeListener {
  return (request, response) => {
    void serve(handle, request, response).catch(() => {
      // The connection broke while the answer was written.
      response.destroy();
    });
  };
}

/** A `Request` cannot have this method, which echoes the headers of a request. */
const forbiddenMethods = new Set(["TRACE", "TRACK", "CONNECT"]);

async function serve(handle: HttpHandler, request: NodeRequest, response: ServerResponse): Promise<void> {
  if (forbiddenMethods.has(request.method ?? ""))
    return answerWithText(response, 405, "This method is not allowed.", { Allow: "GET, HEAD, POST, PUT, DELETE" });
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  const webRequest = toWebRequest(request, gone.signal);
  if (webRequest === null) return answerWithText(response, 400, "The request is not valid.");
  const answer = await handle(webRequest);
  if (response.destroyed) {
    await answer.body?.cancel();
    return;
  }
  // A body that was not read to its end would be taken for the next request.
  if (!request.readableEnded && request.method !== "GET" && request.method !== "HEAD")
    response.setHeader("Connection", "close");
  response.statusCode = answer.status;
  for (const [name, value] of answer.headers)
    if (name === "set-cookie") response.appendHeader(name, value);
    else response.setHeader(name, value);
  if (answer.body === null) response.end();
  else await writeBody(answer.body, response, gone.signal);
}

function answerWithText(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { ...headers, "Content-Type": "text/plain", Connection: "close" });
  response.end(`${text}\n`);
}

/** A name or an address, perhaps with a port. Anything else, such as a user name, could be read in two ways. */
const hostPattern = /^(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?$/i;

/** Returns null if the request has no URL that can be read. */
function toWebRequest(request: NodeRequest, signal: AbortSignal): Request | null {
  const { method = "GET", url = "/", headers } = request;
  if (!url.startsWith("/")) return null;
  // A request of HTTP/1.0, such as the health check of a load balancer, may have no host. With two, the first may be for a
  // proxy and the second for us.
  const [host = "localhost", secondHost] = hostsOf(request);
  if (secondHost !== undefined || !hostPattern.test(host)) return null;
  try {
    const protocol = "encrypted" in request.socket ? "https" : "http";
    const address = new URL(`${protocol}://${host}`);
    const webHeaders = new Headers();
    for (const [name, value] of Object.entries(headers))
      for (const one of [value ?? []].flat()) webHeaders.append(name, one);
    const hasBody = method !== "GET" && method !== "HEAD";
    const webRequest = new Request(`${protocol}://${address.host}${url}`, {
      ...{ method, headers: webHeaders, signal },
      ...(hasBody ? bodyOf(request) : {}),
    });
    setRemoteAddress(webRequest, request.socket.remoteAddress ?? "");
    return webRequest;
  } catch {
    return null;
  }
}

/** All `Host` headers. Requests that a framework makes for tests, such as those of Fastify's `inject`, have no `headersDistinct`. */
const hostsOf = ({ rawHeaders }: IncomingMessage): readonly string[] =>
  rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === "host");

/** A framework that has parsed the body has read the request to its end, and left the body as text, bytes or JSON. */
function bodyOf(request: NodeRequest): RequestInit {
  const { body } = request;
  if (!request.readableEnded)
    return { body: Readable.toWeb(request) as ReadableStream<Uint8Array>, duplex: "half" } as RequestInit;
  if (body === undefined) return {};
  return { body: typeof body === "string" || body instanceof Uint8Array ? body : JSON.stringify(body) };
}

/** Writes as fast as the client reads, and stops when it has gone. */
async function writeBody(body: ReadableStream<Uint8Array>, response: ServerResponse, gone: AbortSignal): Promise<void> {
  const reader = body.getReader();
  const stop = () => void reader.cancel().catch(() => {});
  gone.addEventListener("abort", stop, { once: true });
  for (;;) {
    const { done, value } = await reader.read();
    if (done || response.destroyed) break;
    if (!response.write(value)) await drained(response, gone);
  }
  gone.removeEventListener("abort", stop);
  response.end();
}

const drained = (response: ServerResponse, gone: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      response.off("drain", done);
      gone.removeEventListener("abort", done);
      resolve();
    };
    response.once("drain", done);
    gone.addEventListener("abort", done, { once: true });
  });
