/** Where a request comes from: hosts, origins and addresses that are not ours. */
import { workflow } from "pawl";
import { httpHandler } from "pawl/http";
import { describe, expect, test } from "vitest";
import { setRemoteAddress } from "../../src/http/remote-address.js";
import { rawCall } from "./raw-http.js";
import { type ServedPawl, serve } from "./served-pawl.js";

const quick = workflow("quick", async () => 1);
const allowAll = { authorize: () => ({ user: "ada", access: "all" as const }) };

const portOf = ({ url }: ServedPawl) => new URL(url).port;

async function statusWith(served: ServedPawl, headers: readonly string[], line = "GET /api/v1/runs"): Promise<number> {
  const { status } = await rawCall(served.url, line, [...headers, "Connection: close"]);
  return status;
}

describe("without authorize", () => {
  test("only hosts of this machine are served, so that no page can come by a name of its own", async () => {
    const served = await serve();
    const port = portOf(served);
    for (const host of [
      "localhost",
      `localhost:${port}`,
      "127.0.0.1",
      "127.8.8.8",
      `[::1]:${port}`,
      "pawl.localhost",
      "LOCALHOST",
    ])
      expect([host, await statusWith(served, [`Host: ${host}`])]).toEqual([host, 200]);
    const foreign = [
      ...["evil.example.com", `evil.example.com:${port}`, "localhost.evil.example.com", "127.0.0.1.evil.example.com"],
      ...["10.0.0.1", "0.0.0.0", "[::]", "[::2]", "localhost.", "notlocalhost", "[::ffff:10.0.0.1]", "169.254.169.254"],
    ];
    for (const host of foreign) expect([host, await statusWith(served, [`Host: ${host}`])]).toEqual([host, 403]);
  });

  test("a host that is no host is refused before anything is asked", async () => {
    const served = await serve();
    const garbage = [
      ...["user@localhost", "user:password@localhost", "evil.example.com@localhost", "localhost/path", "localhost?x=1"],
      ...[
        "localhost#x",
        "local host",
        "",
        "localhost:99999",
        "localhost:abc",
        "[::1",
        "%00",
        "localhost\\@evil.example.com",
        "a:b:c",
      ],
    ];
    for (const host of garbage) expect([host, await statusWith(served, [`Host: ${host}`])]).toEqual([host, 400]);
    expect(await statusWith(served, [])).toBe(400);
    expect(await statusWith(served, ["Host: localhost", "Host: evil.example.com"])).toBe(400);
    expect(await statusWith(served, ["Host: evil.example.com", "Host: localhost"])).toBe(400);
    expect(await statusWith(served, ["Host: localhost", "host: localhost"])).toBe(400);
  });

  test("a target with a host of its own is refused, whatever the Host says", async () => {
    const served = await serve();
    for (const target of [
      "http://localhost/live",
      "http://evil.example.com/live",
      "https://localhost/live",
      "*",
      "localhost/live",
    ])
      expect([target, await statusWith(served, ["Host: localhost"], `GET ${target}`)]).toEqual([target, 400]);
    // This is a path that begins with two slashes, not a host.
    expect(await statusWith(served, ["Host: localhost"], "GET //evil.example.com/live")).toBe(404);
    expect(await statusWith(served, ["Host: localhost"], "GET /\\evil.example.com/live")).toBe(404);
  });

  test("a request that came through a proxy is refused, because a proxy hides the client", async () => {
    const served = await serve();
    for (const header of [
      "X-Forwarded-For: 127.0.0.1",
      "X-Forwarded-Host: localhost",
      "Forwarded: for=127.0.0.1",
      "X-Real-IP: ::1",
      "Via: 1.1 proxy",
      "x-forwarded-for:",
    ])
      expect([header, await statusWith(served, ["Host: localhost", header])]).toEqual([header, 403]);
  });

  test("only clients on this machine are let in, by the address of the connection", async () => {
    const { handle } = await serve();
    const statusFrom = async (address: string | null) => {
      const request = new Request("http://localhost/api/v1/runs");
      if (address !== null) setRemoteAddress(request, address);
      return (await handle(request)).status;
    };
    for (const address of ["127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"])
      expect([address, await statusFrom(address)]).toEqual([address, 200]);
    for (const address of [
      null,
      "",
      "10.0.0.1",
      "192.168.1.5",
      "::",
      "::2",
      "fe80::1",
      "::ffff:10.0.0.1",
      "127.0.0.1.evil",
      "localhost",
      "1127.0.0.1",
    ])
      expect([address, await statusFrom(address)]).toEqual([address, 403]);
  });

  test("the health routes are for this machine as well", async () => {
    const served = await serve();
    expect(await statusWith(served, ["Host: evil.example.com"], "GET /live")).toBe(403);
    expect(await statusWith(served, ["Host: localhost"], "GET /live")).toBe(200);
  });
});

describe("with authorize", () => {
  test("every host is served, and clients behind a proxy are let in", async () => {
    const served = await serve(allowAll);
    expect(await statusWith(served, ["Host: ops.example.com", "X-Forwarded-For: 10.0.0.1"])).toBe(200);
  });

  test("only the named hosts are served, if there are names", async () => {
    const served = await serve({ ...allowAll, hosts: ["ops.example.com", "Admin.Example.com:8443"] });
    const cases = { "ops.example.com": 200, "OPS.example.com:3000": 200, "admin.example.com:8443": 200 };
    const refused = {
      "admin.example.com": 403,
      "ops.example.com.evil.com": 403,
      localhost: 403,
      "x.ops.example.com": 403,
    };
    for (const [host, status] of Object.entries({ ...cases, ...refused }))
      expect([host, await statusWith(served, [`Host: ${host}`])]).toEqual([host, status]);
  });
});

describe("a page of another origin", () => {
  const post = (served: ServedPawl, headers: readonly string[]) =>
    rawCall(
      served.url,
      "POST /api/v1/workflows/quick/runs",
      [`Host: localhost:${portOf(served)}`, "Content-Type: application/json", "Content-Length: 2", ...headers],
      "{}",
    );
  const get = (served: ServedPawl, headers: readonly string[]) =>
    rawCall(served.url, "GET /api/v1/runs", [`Host: localhost:${portOf(served)}`, ...headers]);

  test.each([
    ["Origin: https://evil.example.com"],
    ["Origin: null"],
    ["Origin: http://localhost.evil.example.com"],
    ["Origin: http://localhost:1"],
    ["Origin: file://"],
    ["Origin: garbage"],
    ["Origin:"],
    ["Sec-Fetch-Site: cross-site"],
    ["Sec-Fetch-Site: same-site"],
    ["Sec-Fetch-Site: Same-Origin"],
    ["Sec-Fetch-Site:"],
  ])("is refused with %s, to read and to change", async (header) => {
    const served = await serve({ registered: [quick] });
    expect(await post(served, [header])).toMatchObject({ status: 403 });
    const read = await get(served, [header]);
    expect(read.status).toBe(403);
    expect(JSON.parse(read.body)).toMatchObject({ code: "FOREIGN_ORIGIN" });
    expect(read.headers).not.toHaveProperty("access-control-allow-origin");
    expect((await served.pawl.runs()).runs).toEqual([]);
  });

  test("is refused although the two headers disagree", async () => {
    const served = await serve({ registered: [quick], ...allowAll });
    const both = ["Origin: https://evil.example.com", "Sec-Fetch-Site: cross-site"];
    expect((await post(served, both)).status).toBe(403);
    expect(
      (await post(served, ["Sec-Fetch-Site: cross-site", `Origin: http://localhost:${portOf(served)}`])).status,
    ).toBe(403);
    expect((await served.pawl.runs()).runs).toEqual([]);
  });

  test("is told apart from our own pages and from programs, which are served", async () => {
    const served = await serve({ registered: [quick] });
    const own = [`Origin: http://localhost:${portOf(served)}`];
    for (const headers of [
      [],
      own,
      ["Sec-Fetch-Site: same-origin"],
      ["Sec-Fetch-Site: none"],
      [...own, "Sec-Fetch-Site: same-origin"],
    ])
      expect([headers, (await post(served, headers)).status, (await get(served, headers)).status]).toEqual([
        headers,
        201,
        200,
      ]);
  });

  test("may not ask beforehand whether it may send a request", async () => {
    const served = await serve(allowAll);
    const preflight = await rawCall(served.url, "OPTIONS /api/v1/workflows/quick/runs", [
      "Host: localhost",
      "Origin: https://evil.example.com",
      "Access-Control-Request-Method: POST",
      "Access-Control-Request-Headers: content-type",
    ]);
    expect(preflight.status).toBe(405);
    expect(preflight.headers).toMatchObject({ allow: "GET, HEAD, POST, PUT, DELETE" });
    expect(Object.keys(preflight.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  test("that is among the origins may ask, send and read, and no other may", async () => {
    const origin = "https://ops.example.com";
    const served = await serve({ registered: [quick], ...allowAll, origins: [origin] });
    const ask = (from: string) =>
      rawCall(served.url, "OPTIONS /api/v1/runs", [
        "Host: localhost",
        `Origin: ${from}`,
        "Access-Control-Request-Method: POST",
      ]);
    const preflight = await ask(origin);
    expect(preflight.status).toBe(204);
    expect(preflight.headers).toMatchObject({
      "access-control-allow-origin": origin,
      "access-control-allow-headers": "Content-Type, Authorization, Idempotency-Key, Last-Event-ID",
      vary: "Origin",
    });
    for (const other of [
      "https://ops.example.com.evil.com",
      "http://ops.example.com",
      "https://OPS.example.com",
      "null",
      "*",
    ])
      expect([other, (await ask(other)).status]).toEqual([other, 405]);

    const allowed = await post(served, [`Origin: ${origin}`, "Sec-Fetch-Site: cross-site"]);
    expect(allowed.status).toBe(201);
    expect(allowed.headers).toMatchObject({ "access-control-allow-origin": origin, vary: "Origin" });
    const problem = await rawCall(served.url, "GET /api/v1/nothing", ["Host: localhost", `Origin: ${origin}`]);
    expect(problem).toMatchObject({ status: 404, headers: { "access-control-allow-origin": origin } });
    const foreign = await post(served, ["Origin: https://evil.example.com"]);
    expect(foreign.status).toBe(403);
    expect(foreign.headers).not.toHaveProperty("access-control-allow-origin");
  });

  test("that is allowed still needs the access", async () => {
    const origin = "https://ops.example.com";
    const served = await serve({ registered: [quick], authorize: () => null, origins: [origin] });
    expect((await post(served, [`Origin: ${origin}`])).status).toBe(401);
  });
});

test("hosts and origins that could never match are refused when the handler is made", async () => {
  const { pawl } = await serve();
  for (const host of ["https://ops.example.com", "ops.example.com/", "", "*", "a b"])
    expect(() => httpHandler(pawl, { hosts: [host] })).toThrow("hosts has names such as");
  for (const origin of ["ops.example.com", "https://ops.example.com/", "https://OPS.example.com", "*", "null", ""])
    expect(() => httpHandler(pawl, { origins: [origin] })).toThrow("origins has origins as browsers send them");
});

test("no answer may be cached, framed, sniffed or read by another site", async () => {
  const served = await serve();
  for (const path of ["/live", "/api/v1/runs", "/api/v1/nothing"]) {
    const { headers } = await rawCall(served.url, `GET ${path}`, ["Host: localhost"]);
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "x-content-type-options": "nosniff",
      "cross-origin-resource-policy": "same-origin",
    });
  }
});
