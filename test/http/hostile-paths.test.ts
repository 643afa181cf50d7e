/** Paths, queries and methods that no client of ours sends. */
import { workflow } from "pawl";
import { describe, expect, test } from "vitest";
import { allRoutes } from "../../src/http/routes.js";
import { RawConnection, rawCall, rawRequest } from "./raw-http.js";
import { type ServedPawl, serve } from "./served-pawl.js";

const quick = workflow("quick", async (_ctx, input: unknown) => input);
const call = (served: ServedPawl, line: string) => rawCall(served.url, line, ["Host: localhost"]);
const statusOf = async (served: ServedPawl, line: string) => (await call(served, line)).status;

describe("a path", () => {
  test("leads to nothing but its own route, however it is written", async () => {
    const served = await serve();
    const nowhere = [
      ...[
        "/api/v1/../../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/....//etc/passwd",
        "/api/v1/runs/..%2f..%2flive",
      ],
      ...[
        "/LIVE",
        "/live/",
        "/live//",
        "//live",
        "/live%2f",
        "/%6c%69%76%65",
        "/live;x=1",
        "/live%00",
        "/live%20",
        "/api//v1/runs",
        "/api/v1/runs/",
      ],
      ...[
        "/API/v1/runs",
        "/api/v1/Runs",
        "/api/V1/runs",
        "/api/v1/runs/a/b/c",
        "/api/v1/runs//status",
        "/api/v1",
        "/api",
        "/",
        "/favicon.ico",
      ],
      ...[
        "/api/v1/runs/%2e%2e/runs/x/y",
        "/api/v1/workflows//metrics",
        "/__proto__",
        "/constructor",
        "/api/v1/__proto__",
        "/%5c..%5c",
      ],
    ];
    for (const path of nowhere) expect([path, await statusOf(served, `GET ${path}`)]).toEqual([path, 404]);
    // A URL is normalized before it is matched, so these are the routes themselves.
    for (const path of ["/api/../live", "/./live", "/x/%2e%2e/live", "/live#x", "/live?"])
      expect([path, await statusOf(served, `GET ${path}`)]).toEqual([path, 200]);
  });

  test("with percent signs that mean nothing, or NUL, is a bad request", async () => {
    const served = await serve();
    for (const id of ["%", "%00", "a%00b", "%zz", "%c0%af", "%c0%80", "%ff", "%ed%a0%80", "%e0%80%af", "a%", "%u0041"])
      expect([id, await statusOf(served, `GET /api/v1/runs/${id}`)]).toEqual([id, 400]);
  });

  test("with a run that cannot exist is not found, whatever its id contains", async () => {
    const served = await serve();
    const ids = [
      "%2f",
      "..%2f..",
      "'%20OR%201=1",
      "%22",
      "%F0%9F%98%80",
      "%0d%0aSet-Cookie:%20a=b",
      "a".repeat(3_000),
      "__proto__",
      "%25",
      "null",
    ];
    for (const id of ids)
      for (const rest of [
        "",
        "/status",
        "/history",
        "/events",
        "/executions",
        "/graph",
        "/explanation",
        "/state?event=1",
        "/result?timeoutMs=0",
        "/progress",
      ]) {
        const answer = await call(served, `GET /api/v1/runs/${id}${rest}`);
        expect([id, rest, answer.status]).toEqual([id, rest, 404]);
        expect(answer.headers).not.toHaveProperty("set-cookie");
      }
  });

  test("that is too long is refused, by Pawl or by the server", async () => {
    const served = await serve();
    expect(await statusOf(served, `GET /${"a".repeat(4_000)}`)).toBe(404);
    expect(await statusOf(served, `GET /${"a".repeat(5_000)}`)).toBe(400);
    expect(await statusOf(served, `GET /${"a/".repeat(2_500)}`)).toBe(400);
    expect(await statusOf(served, `GET /${"a".repeat(100_000)}`)).toBe(431);
    expect(await statusOf(served, `GET /api/v1/runs?tag=${"a".repeat(10_000)}`)).toBe(400);
  });
});

describe("a query", () => {
  test("has only the parameters of its route, each once, and only with values that they take", async () => {
    const served = await serve();
    const queries = [
      ...[
        "x=1",
        "limit=1&limit=2",
        "limit=1&limit=1",
        "limit",
        "limit=",
        "limit=0",
        "limit=-1",
        "limit=1001",
        "limit=1.5",
        "limit=1e2",
        "limit=0x10",
        "limit=%205",
        "limit=NaN",
      ],
      ...[
        "limit=99999999999999999999",
        "limit[]=1",
        "limit%00=1",
        "status=Paused",
        "status=paused%00",
        "status=",
        "active=yes",
        "active=2",
        "plain=maybe",
      ],
      ...[
        "heroType=User",
        "heroId=1",
        "createdAfter=soon",
        "createdAfter=99999999999999999999",
        "createdAfter=",
        "cursor=garbage",
        "cursor=",
        "cursor=%00",
      ],
      ...[
        "__proto__=1",
        "constructor=1",
        "toString=1",
        "maxPayload=-1",
        "maxPayload=x",
        "Status=paused",
        "status=paused&%73tatus=paused",
        "%ff=1",
      ],
      ...[
        "fingerprint=",
        "idempotencyKey=",
        "idempotencyKey=%00",
        `tag=${"a".repeat(4_001)}`,
        `fingerprint=${"a".repeat(101)}`,
      ],
    ];
    for (const query of queries) {
      const answer = await call(served, `GET /api/v1/runs?${query}`);
      expect([query.slice(0, 50), answer.status]).toEqual([query.slice(0, 50), 400]);
      expect(answer.headers["content-type"]).toBe("application/problem+json");
    }
  });

  test("of a route that takes no parameters must be empty", async () => {
    const served = await serve();
    expect(await statusOf(served, "GET /live?x=1")).toBe(400);
    expect(await statusOf(served, "GET /api/v1/workers?plain=1")).toBe(400);
  });

  test("with cursors of another list, or made by hand, reads nothing wrong", async () => {
    const served = await serve({ registered: [quick] });
    await served.pawl.start(quick, 1);
    const { id } = await served.pawl.start(quick, 2);
    const cursorOf = (text: string) => Buffer.from(text).toString("base64url");
    const bad = [
      "1:nobody",
      ":",
      `1e400:${id}`,
      `NaN:${id}`,
      `:${id}`,
      `1.5:${id}`,
      `-1:${id}`,
      `1e300:${id}`,
      `1:${id}:2`,
      `0x1:${id}`,
      ` 1:${id}`,
    ];
    for (const text of bad)
      expect([text, await statusOf(served, `GET /api/v1/runs?cursor=${cursorOf(text)}`)]).toEqual([text, 400]);
    const { next } = (await served.get("/api/v1/runs?limit=1")).json;
    expect((await served.get(`/api/v1/runs?limit=1&cursor=${next}&status=completed`)).status).toBe(200);
  });
});

describe("a method", () => {
  test("that a path does not have is refused, with those that it has", async () => {
    const served = await serve();
    for (const { method, path } of allRoutes) {
      const line = path.replace(/\{\w+\}/g, "x");
      const allow = [
        ...new Set(
          allRoutes
            .filter((one) => one.path === path)
            .flatMap((one) => (one.method === "GET" ? ["GET", "HEAD"] : [one.method])),
        ),
      ].join(", ");
      const others = [
        "PATCH",
        "TRACE",
        "PROPFIND",
        "REPORT",
        ...["GET", "POST", "PUT", "DELETE"].filter((one) => !allow.includes(one)),
      ];
      for (const other of others) {
        const answer = await call(served, `${other} ${line}`);
        expect([other, path, answer.status, answer.headers.allow]).toEqual([
          other,
          path,
          405,
          other === "TRACE" ? "GET, HEAD, POST, PUT, DELETE" : allow,
        ]);
      }
      expect(method).toMatch(/^(GET|POST|PUT|DELETE)$/);
    }
  });

  test("that HTTP does not know never reaches Pawl", async () => {
    const served = await serve();
    for (const method of ["FOO", "get", "G E T", "GET\t", "\u0000"])
      expect([method, await statusOf(served, `${method} /live`)]).toEqual([method, 400]);
    const connect = new RawConnection(served.url).send(rawRequest("CONNECT localhost:80", ["Host: localhost"]));
    await connect.closed;
    expect(connect.received).toBe("");
  });

  test("HEAD answers as GET does, without a body, and opens no stream", async () => {
    const served = await serve({ registered: [quick], maxStreams: 1 });
    const { id } = await served.pawl.start(quick, 1);
    await served.pawl.run(id).result();
    for (const path of [
      "/live",
      "/api/v1/runs",
      `/api/v1/runs/${id}`,
      "/api/v1/nothing",
      "/api/v1/changes",
      `/api/v1/runs/${id}/events`,
      "/api/v1/changes",
    ]) {
      const head = await fetch(served.url + path, { method: "HEAD" });
      expect([path, head.status, await head.text()]).toEqual([path, path.endsWith("nothing") ? 404 : 200, ""]);
    }
  });
});

describe("several requests on one connection", () => {
  const bodyWithRequest = `GET /api/v1/counts HTTP/1.1\r\nHost: localhost\r\n\r\n`;

  test("a refused body is never taken for the next request", async () => {
    const served = await serve({ registered: [quick], maxBodyBytes: 10 });
    const heads = [
      ["Content-Type: text/plain", `Content-Length: ${bodyWithRequest.length}`],
      ["Content-Type: application/json", `Content-Length: ${bodyWithRequest.length}`],
      ["Origin: https://evil.example.com", `Content-Length: ${bodyWithRequest.length}`],
    ];
    for (const headers of heads) {
      const connection = new RawConnection(served.url);
      connection.send(
        rawRequest("POST /api/v1/workflows/quick/runs", ["Host: localhost", ...headers], bodyWithRequest),
      );
      const answers = await connection.answers();
      expect([headers[0], answers.length, answers[0]?.headers.connection]).toEqual([headers[0], 1, "close"]);
    }
    // A chunked body whose chunk contains a request.
    const connection = new RawConnection(served.url);
    const chunk = `${bodyWithRequest.length.toString(16)}\r\n${bodyWithRequest}\r\n0\r\n\r\n`;
    connection.send(rawRequest("POST /api/v1/verify", ["Host: localhost", "Transfer-Encoding: chunked"], chunk));
    expect((await connection.answers()).map(({ status }) => status)).toEqual([415]);
  });

  test("are answered in their order when they are sent at once", async () => {
    const served = await serve();
    const connection = new RawConnection(served.url);
    const lines = ["GET /live", "GET /api/v1/nothing", "GET /ready"];
    connection.send(lines.map((line) => rawRequest(line, ["Host: localhost"])).join(""));
    expect((await connection.answers(3)).map(({ status }) => status)).toEqual([200, 404, 200]);
  });

  test("with lengths that contradict each other are refused by the server", async () => {
    const served = await serve({ registered: [quick] });
    const shapes = [
      ["Content-Length: 2", "Content-Length: 3"],
      ["Content-Length: 2, 3"],
      ["Content-Length: 2", "Transfer-Encoding: chunked"],
      ["Transfer-Encoding: chunked, identity"],
      ["Transfer-Encoding: xchunked"],
      ["Content-Length: +2"],
      ["Content-Length: 0x2"],
      ["Content-Length: -1"],
      ["Content-Length : 2"],
      ["X: a\r\n folded: b\nContent-Length: 2"],
    ];
    for (const headers of shapes) {
      const request = rawRequest(
        "POST /api/v1/workflows/quick/runs",
        ["Host: localhost", "Content-Type: application/json", ...headers],
        "{}",
      );
      const connection = new RawConnection(served.url);
      connection.send(request + rawRequest("GET /live", ["Host: localhost"]));
      connection.socket.end();
      const answers = await connection.answers();
      expect([headers, answers.every(({ status }) => status >= 400)]).toEqual([headers, true]);
    }
    expect((await served.pawl.runs()).runs).toEqual([]);
  });
});
