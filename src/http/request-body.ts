/** Reads the JSON of a request, within a size and a time. */
import type { Runtime, Timer } from "../runtime/runtime.js";
import { HttpError } from "./problem.js";

export interface BodyLimits {
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

/** @throws HttpError 400, 408, 413 or 415 */
export async function readJsonBody(request: Request, limits: BodyLimits, runtime: Runtime): Promise<unknown> {
  const type = request.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  // A browser sends other types to foreign origins without asking first.
  if (type !== "application/json")
    throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as JSON, with Content-Type: application/json.");
  // A small compressed body may become a very large one.
  const encoding = request.headers.get("content-encoding")?.trim().toLowerCase() ?? "identity";
  if (encoding !== "identity")
    throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", "Send the body without a Content-Encoding.");
  const text = await readText(request, limits, runtime);
  if (text === "" && Number(request.headers.get("content-length") ?? 0) > 0) throw new Error(bodyWasRead);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, "BAD_REQUEST", `The body is not valid JSON: ${(error as Error).message.slice(0, 200)}.`);
  }
}

/** For the log of the server: the client can do nothing about it. */
const bodyWasRead =
  "The application has read the body of the request before Pawl. Mount Pawl before what reads bodies, or pass on what was read: as `body` of Node's request, or in a new Request.";

async function readText(request: Request, { maxBytes, timeoutMs }: BodyLimits, runtime: Runtime): Promise<string> {
  const tooLarge = () => new HttpError(413, "BODY_TOO_LARGE", `The body has more than ${maxBytes} bytes.`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge();
  if (request.bodyUsed) throw new Error(bodyWasRead);
  const reader = request.body?.getReader();
  if (reader === undefined) return "";
  let timer: Timer | null = null;
  const deadline = new Promise<never>((_, reject) => {
    const tooSlow = () =>
      new HttpError(408, "REQUEST_TIMEOUT", `The body did not arrive within ${timeoutMs / 1_000} s.`);
    timer = runtime.setTimeout(() => reject(tooSlow()), timeoutMs);
  });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read(), deadline]);
      if (done) break;
      bytes += value.byteLength;
      if (bytes > maxBytes) throw tooLarge();
      chunks.push(value);
    }
  } catch (error) {
    void reader.cancel().catch(() => {});
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, "BAD_REQUEST", "The body broke off.");
  } finally {
    runtime.clearTimeout(timer);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    throw new HttpError(400, "BAD_REQUEST", "The body is not valid UTF-8.");
  }
}
