/** Files in buckets, over HTTP, as S3 and its like keep them. */
import { PermanentError, TransientError } from "pawl";
import type { FileRef } from "./contract.js";

const storeUrl = process.env.STORE_URL ?? "http://127.0.0.1:9000";

export async function download(file: FileRef): Promise<string> {
  return (await request("GET", pathOf(file))).text();
}

/** The text of the file, or null if there is none. */
export async function find(file: FileRef): Promise<string | null> {
  const answer = await send("GET", pathOf(file));
  return answer.status === 404 ? null : (await checked(answer, "GET", pathOf(file))).text();
}

/** Whole files only, so uploading one again changes nothing. */
export async function upload(file: FileRef, body: string | Uint8Array): Promise<string> {
  await request("PUT", pathOf(file), body);
  return file.key;
}

export async function list(bucket: string, prefix: string): Promise<string[]> {
  return (await (await request("GET", `${bucket}/?prefix=${prefix}`)).json()) as string[];
}

const pathOf = ({ bucket, key }: FileRef) => `${bucket}/${key}`;

async function request(method: string, path: string, body?: string | Uint8Array): Promise<Response> {
  return checked(await send(method, path, body), method, path);
}

/** A store that cannot be reached throws a plain error, which is retried as the step's policy says. */
function send(method: string, path: string, body: string | Uint8Array | null = null): Promise<Response> {
  return fetch(`${storeUrl}/${path}`, { method, body, headers: { "user-agent": `files-worker/${process.pid}` } });
}

/** A missing file is a permanent error. A busy store is a transient error, and says when to try again. */
async function checked(answer: Response, method: string, path: string): Promise<Response> {
  if (answer.ok) return answer;
  const { status } = answer;
  if (status === 404) throw new PermanentError(`File not found: ${path}`);
  const problem = `${method} ${path}: ${status}`;
  if (status === 429 || status === 503)
    throw new TransientError(problem, { retryAfter: `${answer.headers.get("retry-after") ?? 10}s` });
  throw status < 500 ? new PermanentError(problem) : new Error(problem);
}
