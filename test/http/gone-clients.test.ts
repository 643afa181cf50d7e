/** Clients that have gone, and requests without a reader, leave nothing open and no error in the log. */
import { connect, workflow } from "pawl";
import { type HttpHandler, type HttpOptions, httpHandler } from "pawl/http";
import { expect, onTestFinished, test } from "vitest";
import { silent } from "../support/virtual-worlds.js";

const waiting = workflow("waiting", async (ctx) => void (await ctx.waitForSignal("go")));

interface Handled {
  readonly handle: HttpHandler;
  readonly runId: string;
  readonly errors: string[];
}

async function handled(options: HttpOptions): Promise<Handled> {
  const errors: string[] = [];
  const pawl = await connect("memory:", { logger: { ...silent, error: (text) => void errors.push(String(text)) } });
  onTestFinished(() => pawl.close());
  const handle = httpHandler(pawl, { authorize: () => ({ access: "all" }), ...options });
  return { handle, errors, runId: (await pawl.start(waiting)).id };
}

test("a client that leaves a long poll gives its slot back and is no error", async () => {
  const { handle, runId, errors } = await handled({ maxStreams: 1 });
  const client = new AbortController();
  const url = `http://ops.example/api/v1/runs/${runId}/result`;
  const poll = handle(new Request(url, { signal: client.signal }));
  expect((await handle(new Request(url))).status).toBe(503);
  client.abort();
  expect((await poll).status).toBe(499);
  expect((await handle(new Request(`${url}?timeoutMs=0`))).status).toBe(202);
  expect(errors).toEqual([]);
});

test.each(["changes", "events"])("HEAD of the stream of %s opens no stream", async (kind) => {
  const { handle, runId } = await handled({ maxStreams: 1 });
  const path = kind === "changes" ? "changes" : `runs/${runId}/events`;
  for (let request = 0; request < 3; request += 1) {
    const response = await handle(new Request(`http://ops.example/api/v1/${path}`, { method: "HEAD" }));
    expect(response.status).toBe(200);
    expect(response.body).toBeNull();
  }
});
