/** HTTP over a plain socket, for requests that no polite client sends. */
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface RawAnswer {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class RawConnection {
  readonly socket: Socket;
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  #received = Buffer.alloc(0);
  #onData = () => {};

  constructor(url: string) {
    const { hostname, port } = new URL(url);
    this.socket = connect(Number(port), hostname);
    this.socket.on("error", () => {});
    this.socket.on("data", (data) => {
      this.#received = Buffer.concat([this.#received, data]);
      this.#onData();
    });
    this.closed = new Promise((resolve) => this.socket.once("close", () => resolve()));
    onTestFinished(() => void this.socket.destroy());
  }

  get received(): string {
    return this.#received.toString("latin1");
  }

  send(...parts: readonly (string | Uint8Array)[]): this {
    for (const part of parts) this.socket.write(typeof part === "string" ? Buffer.from(part, "latin1") : part);
    return this;
  }

  /** The first answers, or all that came before the server closed the connection. */
  async answers(count = Number.POSITIVE_INFINITY): Promise<RawAnswer[]> {
    let isClosed = false;
    void this.closed.then(() => {
      isClosed = true;
      this.#onData();
    });
    for (;;) {
      const answers = parseAnswers(this.received, isClosed);
      if (answers.length >= count || isClosed) return answers.slice(0, count);
      await new Promise<void>((resolve) => {
        this.#onData = resolve;
      });
    }
  }

  async answer(): Promise<RawAnswer> {
    const [first] = await this.answers(1);
    if (first === undefined) throw new Error(`The server closed the connection without an answer: ${this.received}`);
    return first;
  }
}

function parseAnswers(text: string, isClosed: boolean): RawAnswer[] {
  const answers: RawAnswer[] = [];
  let rest = text;
  for (;;) {
    const headEnd = rest.indexOf("\r\n\r\n");
    if (headEnd < 0) return answers;
    const [statusLine, ...lines] = rest.slice(0, headEnd).split("\r\n") as [string, ...string[]];
    const status = Number(statusLine.split(" ")[1]);
    const headers = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]),
    );
    const parsed = parseBody(rest.slice(headEnd + 4), headers, isClosed || status === 204);
    if (parsed === null) return answers;
    if (status >= 200) answers.push({ status, headers, body: parsed.body });
    rest = parsed.rest;
  }
}

function parseBody(
  text: string,
  headers: Readonly<Record<string, string>>,
  isClosed: boolean,
): { readonly body: string; readonly rest: string } | null {
  const length = headers["content-length"];
  if (length !== undefined) {
    if (text.length < Number(length) && !isClosed) return null;
    return { body: text.slice(0, Number(length)), rest: text.slice(Number(length)) };
  }
  if (headers["transfer-encoding"] !== "chunked") return isClosed ? { body: text, rest: "" } : null;
  let body = "";
  for (let rest = text; ; ) {
    const lineEnd = rest.indexOf("\r\n");
    const size = Number.parseInt(rest, 16);
    if (lineEnd < 0 || rest.length < lineEnd + 2 + size + 2) return isClosed ? { body, rest: "" } : null;
    body += rest.slice(lineEnd + 2, lineEnd + 2 + size);
    rest = rest.slice(lineEnd + 2 + size + 2);
    if (size === 0) return { body, rest };
  }
}

/** A request as text. Headers are given as lines, so that they may be missing, doubled or wrong. */
export function rawRequest(requestLine: string, headers: readonly string[], body = ""): string {
  return [`${requestLine} HTTP/1.1`, ...headers, "", body].join("\r\n");
}

/** Sends one request and returns its answer; the connection is then closed. */
export async function rawCall(
  url: string,
  requestLine: string,
  headers: readonly string[],
  body = "",
): Promise<RawAnswer> {
  const connection = new RawConnection(url);
  const answer = await connection.send(rawRequest(requestLine, headers, body)).answer();
  connection.socket.destroy();
  return answer;
}
