/** Bodies that are wrong, huge, endless or never arrive. */
import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { until } from "../support/waiting.js";
import { RawConnection, rawCall, rawRequest } from "./raw-http.js";
import { type ServedPawl, serve } from "./served-pawl.js";
import { WatchedRuntime } from "./watched-runtime.js";

const quick = workflow("quick", async (_ctx, input: unknown) => input);
const startLine = "POST /api/v1/workflows/quick/runs";
const json = "Content-Type: application/json";

const send = (served: ServedPawl, headers: readonly string[], body: string | Uint8Array) => {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const head = rawRequest(startLine, ["Host: localhost", ...headers, `Content-Length: ${bytes.length}`]);
  return new RawConnection(served.url).send(head, bytes).answer();
};
const runCount = async ({ pawl }: ServedPawl) => (await pawl.runs()).runs.length;
const codeOf = (answer: { readonly body: string }) => JSON.parse(answer.body).code as string;

describe("the type of a body", () => {
  test("must be JSON, so that no form of another site can start a run", async () => {
    const served = await serve({ registered: [quick] });
    const types = [
      ...[
        "text/plain",
        "text/plain; charset=application/json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
      ],
      ...[
        "text/json",
        "application/jsonx",
        "application/xml",
        "",
        "application/json, text/plain",
        "*/*",
        "application/json/x",
      ],
    ];
    for (const type of types)
      expect([type, (await send(served, [`Content-Type: ${type}`], "{}")).status]).toEqual([type, 415]);
    expect((await send(served, [], "{}")).status).toBe(415);
    expect((await send(served, ["Content-Type: text/plain", json], "{}")).status).toBe(415);
    expect(codeOf(await send(served, ["Content-Type: text/plain"], '{"input":"='))).toBe("UNSUPPORTED_MEDIA_TYPE");
    expect(await runCount(served)).toBe(0);
  });

  test("may have parameters, and capitals", async () => {
    const served = await serve({ registered: [quick] });
    for (const type of [
      "application/json; charset=utf-8",
      "Application/JSON",
      "application/json;x=y",
      " application/json ",
    ])
      expect([type, (await send(served, [`Content-Type: ${type}`], "{}")).status]).toEqual([type, 201]);
  });

  test("may not be compressed, because a small body could become a large one", async () => {
    const served = await serve({ registered: [quick] });
    for (const encoding of ["gzip", "br", "deflate, gzip", "x"])
      expect([encoding, (await send(served, [json, `Content-Encoding: ${encoding}`], "{}")).status]).toEqual([
        encoding,
        415,
      ]);
    expect((await send(served, [json, "Content-Encoding: identity"], "{}")).status).toBe(201);
  });
});

describe("the size of a body", () => {
  const maxBodyBytes = 10_000;

  test("is refused by its Content-Length, before anything is read, and the connection is closed", async () => {
    const served = await serve({ registered: [quick], maxBodyBytes });
    const connection = new RawConnection(served.url);
    connection.send(rawRequest(startLine, ["Host: localhost", json, `Content-Length: ${maxBodyBytes + 1}`]));
    const answer = await connection.answer();
    expect([answer.status, codeOf(answer), answer.headers.connection]).toEqual([413, "BODY_TOO_LARGE", "close"]);
    await connection.closed;
    const atLimit = JSON.stringify({ input: "x".repeat(maxBodyBytes - 12) });
    expect([atLimit.length, (await send(served, [json], atLimit)).status]).toEqual([maxBodyBytes, 201]);
    expect((await send(served, [json], `${atLimit} `)).status).toBe(413);
  });

  test("is counted when there is no Content-Length: an endless body is answered and cut off", async () => {
    const served = await serve({ registered: [quick], maxBodyBytes });
    const connection = new RawConnection(served.url);
    connection.send(rawRequest(startLine, ["Host: localhost", json, "Transfer-Encoding: chunked"]));
    const chunk = `400\r\n${"x".repeat(1_024)}\r\n`;
    let isClosed = false;
    void connection.closed.then(() => {
      isClosed = true;
    });
    let sentBytes = 0;
    const pump = () => {
      while (!isClosed && connection.socket.write(chunk)) sentBytes += chunk.length;
    };
    connection.socket.on("drain", pump);
    pump();
    const answer = await connection.answer();
    expect([answer.status, codeOf(answer), answer.headers.connection]).toEqual([413, "BODY_TOO_LARGE", "close"]);
    await connection.closed;
    // What the system buffers on its way, and not what a patient server would have read.
    expect(sentBytes).toBeLessThan(50_000_000);
    expect(await runCount(served)).toBe(0);
  });

  test("of many endless bodies at once stays within the limit of each", async () => {
    const served = await serve({ registered: [quick], maxBodyBytes: 100_000 });
    const before = process.memoryUsage().arrayBuffers;
    const connections = Array.from({ length: 100 }, () => new RawConnection(served.url));
    const head = rawRequest(startLine, ["Host: localhost", json, "Transfer-Encoding: chunked"]);
    const half = `c350\r\n${"x".repeat(50_000)}\r\n`;
    for (const connection of connections) connection.send(head, half);
    await until(() => serverBytes(served) >= 100 * 50_000);
    for (const connection of connections) connection.send(half, half);
    const answers = await Promise.all(connections.map((connection) => connection.answer()));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([413]));
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(100 * 1_000_000);
    await until(() => served.sockets.size === 0);
  });
});

const serverBytes = ({ sockets }: ServedPawl) => [...sockets].reduce((sum, { bytesRead }) => sum + bytesRead, 0);

describe("a body that does not arrive", () => {
  test("is answered with 408 after its time, and the connection is closed", async () => {
    const runtime = new WatchedRuntime();
    const served = await serve({ registered: [quick], runtime });
    for (const part of ["", '{"input":'] as const) {
      const connection = new RawConnection(served.url);
      connection.send(rawRequest(startLine, ["Host: localhost", json, "Content-Length: 100"], part));
      await until(() => runtime.pendingCount(30_000) === 1);
      runtime.fire(30_000);
      const answer = await connection.answer();
      expect([answer.status, codeOf(answer), answer.headers.connection]).toEqual([408, "REQUEST_TIMEOUT", "close"]);
      await connection.closed;
    }
    expect(runtime.pendingCount(30_000)).toBe(0);
  });

  test("because its client has gone leaves nothing behind", async () => {
    const runtime = new WatchedRuntime();
    const served = await serve({ registered: [quick], runtime });
    const connections = Array.from({ length: 50 }, () => new RawConnection(served.url));
    for (const connection of connections)
      connection.send(rawRequest(startLine, ["Host: localhost", json, "Content-Length: 100"], '{"input":'));
    await until(() => runtime.pendingCount(30_000) === 50);
    for (const { socket } of connections) socket.destroy();
    await until(() => runtime.pendingCount(30_000) === 0 && served.sockets.size === 0);
    expect(await runCount(served)).toBe(0);
  });

  test("because it is shorter than it says is no run", async () => {
    const served = await serve({ registered: [quick] });
    const connection = new RawConnection(served.url);
    connection.send(rawRequest(startLine, ["Host: localhost", json, "Content-Length: 100"], "{}"));
    connection.socket.end();
    await connection.closed;
    expect(await runCount(served)).toBe(0);
  });
});

describe("the text of a body", () => {
  test("that is no JSON object of known fields is refused with a sentence", async () => {
    const served = await serve({ registered: [quick] });
    const bodies = [
      ...[
        "",
        "{",
        "}",
        "null",
        "[]",
        '"x"',
        "1",
        "undefined",
        "{'input':1}",
        '{"input":1,}',
        '{"input":NaN}',
        "\u0000",
        "{}{}",
      ],
      ...['{"inputs":1}', '{"__proto__":{"input":1}}', '{"constructor":{"prototype":{"input":1}}}', '{"toString":1}'],
      ...[
        '{"tags":"a"}',
        '{"tags":[1]}',
        '{"priority":1e99}',
        '{"priority":1.5}',
        '{"priority":"x"}',
        '{"delay":{}}',
        '{"startAt":"soon"}',
      ],
      ...[
        '{"hero":{"type":"a"}}',
        '{"hero":{"type":"a","id":"b","x":1}}',
        '{"hero":null}',
        '{"idempotencyKey":1}',
        '{"by":1}',
      ],
    ];
    for (const body of bodies) {
      const answer = await send(served, [json], body);
      expect([body, answer.status, codeOf(answer)]).toEqual([body, 400, "BAD_REQUEST"]);
    }
    expect(await runCount(served)).toBe(0);
  });

  test("that is not UTF-8 is refused", async () => {
    const served = await serve({ registered: [quick] });
    const invalid = [[0xff], [0xc0, 0x80], [0xed, 0xa0, 0x80], [0xe2, 0x82], [0xf8, 0x88, 0x80, 0x80, 0x80]];
    for (const bytes of invalid) {
      const body = Buffer.concat([Buffer.from('{"input":"'), Buffer.from(bytes), Buffer.from('"}')]);
      expect([bytes, (await send(served, [json], body)).status]).toEqual([bytes, 400]);
    }
    const utf16 = Buffer.from('\ufeff{"input":1}', "utf16le");
    expect((await send(served, [json], utf16)).status).toBe(400);
  });

  test("that is nested 100,000 deep is refused, wherever it is nested", async () => {
    const served = await serve({ registered: [quick] });
    const { id } = await served.pawl.start(quick, 1);
    const deepLists = "[".repeat(100_000) + "]".repeat(100_000);
    const deepObjects = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
    const paths: Readonly<Record<string, (deep: string) => string>> = {
      "/api/v1/workflows/quick/runs": (deep) => `{"input":${deep}}`,
      "/api/v1/workflows/quick/runs/batch": (deep) => `{"inputs":[${deep}]}`,
      "/api/v1/graphs": (deep) => `{"name":"g","nodes":[{"name":"a","job":"b","args":${deep}}]}`,
      [`/api/v1/runs/${id}/signals`]: (deep) => `{"name":"s","payload":${deep}}`,
      [`/api/v1/runs/${id}/resume`]: (deep) => `{"output":${deep}}`,
      [`/api/v1/runs/${id}/graph`]: (deep) => `{"graph":${deep}}`,
      [`/api/v1/runs/${id}/pause`]: (deep) => `{"reason":${deep}}`,
      "/api/v1/prune": (deep) => `{"olderThan":${deep}}`,
      "/api/v1/verify": (deep) => deep,
    };
    for (const [path, bodyOf] of Object.entries(paths))
      for (const deep of [deepLists, deepObjects]) {
        const body = bodyOf(deep);
        const headers = ["Host: localhost", json, `Content-Length: ${body.length}`];
        const answer = await rawCall(served.url, `POST ${path}`, headers, body);
        expect([path, answer.status, answer.body.length < 1_000]).toEqual([path, 400, true]);
      }
  });
});

describe("values in a body", () => {
  test("are stored and shown as they are, also with names that mean something to JavaScript", async () => {
    const served = await serve({ registered: [quick] });
    const inputs = [
      ...['{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{"x":1}}}', '{"toString":1,"hasOwnProperty":2}'],
      ...[
        '"\\u0000"',
        '"\\ud800"',
        '"\\udc00\\ud800"',
        "1e308",
        "-0",
        "5e-324",
        "9007199254740993",
        '"\\u2028</script>"',
        "null",
      ],
      ...['{"":{"":""}}', "[[],{}]", '{"a\\u0000b":1}', '{"$":1}'],
    ];
    for (const input of inputs) {
      const { id } = JSON.parse((await send(served, [json], `{"input":${input}}`)).body);
      const run = served.pawl.run(id);
      const output = await run.result();
      // -0 has a tag of its own in the log; all else is JSON as it came.
      if (input !== "-0") expect([input, JSON.stringify(output)]).toEqual([input, JSON.stringify(JSON.parse(input))]);
      for (const query of ["", "?plain=1"]) {
        const shown = (await served.get(`/api/v1/runs/${id}${query}`)).json;
        if (input !== "-0")
          expect([input, JSON.stringify(shown.output)]).toEqual([input, JSON.stringify(JSON.parse(input))]);
      }
    }
    expect(({} as Record<string, unknown>).admin).toBeUndefined();
  });

  test("with tags that the log does not know are refused, and change no prototype", async () => {
    const served = await serve({ registered: [quick] });
    const tagged = [
      ...['{"$pawl":"Nonsense","v":1}', '{"$pawl":1}', '{"$pawl":"Function","v":"x"}', '{"$pawl":"RegExp","v":"("}'],
      ...['{"$pawl":"hidden"}', '{"$pawl":"__proto__","v":{}}', '{"$pawl":"BigInt","v":"1.5"}'],
    ];
    for (const input of tagged) {
      const answer = await send(served, [json], `{"input":${input}}`);
      expect([input, answer.status]).toEqual([input, 400]);
    }
    expect(await runCount(served)).toBe(0);
  });

  test("that are larger than a payload may be are refused with 413", async () => {
    const served = await serve({ registered: [quick] });
    const answer = await send(served, [json], JSON.stringify({ input: "x".repeat(1_100_000) }));
    expect([answer.status, codeOf(answer)]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
  });
});
