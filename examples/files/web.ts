/**
 * The same as a web service: handlers that start runs, report them, and accept an approval. It has no workflow code.
 *
 *     POST /uploads               { "bucket": "docs", "key": "report.txt" }
 *     GET  /runs/<run>
 *     POST /runs/<run>/approval   { "by": "ada" }
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { connect, PawlError, RunNotFoundError, WorkflowNotFoundError } from "pawl";
import type { Approval, FileRef, ProcessedFile } from "./contract.js";

type Answer = readonly [status: number, body: object];

// Once per process: handlers share it.
const pawl = await connect(process.env.PAWL_URL);

/** Answers as soon as the run is durable, whether or not a worker is available now. */
async function handleUpload(upload: FileRef & { readonly workflow?: string }): Promise<Answer> {
  const { workflow = "process_file", bucket, key } = upload;
  const run = await pawl.workflow<FileRef, ProcessedFile>(workflow).trigger({ bucket, key });
  return [202, { run: run.id, warning: run.warning }];
}

async function handleStatus(id: string): Promise<Answer> {
  const { status, output, error } = await pawl.run(id).get();
  return [200, { status, output, error: error?.message ?? null }];
}

/** Completes the step at which the run is paused, with the approval as its result. */
async function handleApproval(id: string, approval: Approval): Promise<Answer> {
  await pawl.run(id).resume({ output: approval });
  return [202, {}];
}

async function route(request: IncomingMessage): Promise<Answer> {
  const [, things, id = "", action] = (request.url ?? "").split("/");
  if (request.method === "POST" && things === "uploads") return handleUpload((await json(request)) as FileRef);
  if (request.method === "GET" && things === "runs") return handleStatus(id);
  if (request.method === "POST" && action === "approval") return handleApproval(id, (await json(request)) as Approval);
  return [404, { error: "Not found" }];
}

function refusal(error: unknown): Answer {
  if (!(error instanceof PawlError)) return [500, { error: String(error) }];
  const isUnknown = error instanceof WorkflowNotFoundError || error instanceof RunNotFoundError;
  return [isUnknown ? 404 : 409, { code: error.code, error: error.message }];
}

const server = createServer(async (request, response) => {
  const [status, body] = await route(request).catch(refusal);
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
});
server.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => {
  console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

process.once("SIGTERM", async () => {
  server.close();
  server.closeAllConnections();
  await pawl.close();
});
