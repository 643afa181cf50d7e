/** The dashboard as the HTTP handler serves it: its page and its files, to whom, and with which headers. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { connect } from "pawl";
import { type Authorization, type HttpOptions, httpHandler } from "pawl/http";
import { describe, expect, onTestFinished, test } from "vitest";
import { silent } from "../support/virtual-worlds.js";
import { rawCall } from "./raw-http.js";
import { serve } from "./served-pawl.js";

const built = new URL("../../dist/dashboard/", import.meta.url);
const files = JSON.parse(readFileSync(new URL("assets.json", built), "utf8")) as string[];
const script = files.find((file) => file.endsWith(".js")) ?? expect.fail("There is no script.");

const asAda = { authorize: () => ({ user: "ada", access: "all" as const }) };

/** The handler on a database in memory; requests are GETs for a host of the internet. */
async function open(options: HttpOptions = {}) {
  const pawl = await connect("memory:", { logger: silent });
  onTestFinished(() => pawl.close());
  const handle = httpHandler(pawl, { dashboard: true, ...asAda, ...options });
  return (path: string, init: RequestInit = {}) => handle(new Request(`https://ops.example.com${path}`, init));
}

const baseIn = (page: string) => /<base href="([^"]*)" \/>/.exec(page)?.[1];

describe("the page", () => {
  test.each(["/", "/runs", "/runs/01a1", "/workflows/a%2Fb", "/index.html", "/package.json", "/assets.json"])(
    "is served at %s, because screens have paths",
    async (path) => {
      const get = await open();
      const response = await get(path);
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
      expect(baseIn(await response.text())).toBe("/");
    },
  );

  test("has the base path that browsers see, whether a proxy has stripped it or not", async () => {
    const get = await open({ basePath: "/admin/pawl/" });
    for (const path of ["/admin/pawl/", "/admin/pawl/runs", "/", "/runs"])
      expect([path, baseIn(await (await get(path)).text())]).toEqual([path, "/admin/pawl/"]);
  });

  test("is served at the base path without a slash too: Next.js strips it, and a redirect would come back for ever", async () => {
    const get = await open({ basePath: "/pawl" });
    const response = await get("/pawl?theme=dark");
    expect([response.status, baseIn(await response.text())]).toEqual([200, "/pawl/"]);
  });

  test("runs nothing but its own files, is in no frame, and is not kept", async () => {
    const get = await open();
    const response = await get("/");
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy.split("; ")).toEqual(
      expect.arrayContaining(["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]),
    );
    expect(policy).not.toContain("unsafe");
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "referrer-policy": "no-referrer",
      "cross-origin-opener-policy": "same-origin",
      "cross-origin-resource-policy": "same-origin",
    });
    const page = await response.text();
    // Inline script and style would be refused.
    expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
    expect(page).not.toMatch(/(?:src|href)="(?:https?:)?\/\//);
  });

  test("names only files that are served", async () => {
    const get = await open({ basePath: "/pawl" });
    const page = await (await get("/pawl/runs")).text();
    const named = [...page.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map(([, path]) => path as string);
    expect(named.length).toBeGreaterThanOrEqual(3);
    for (const path of named) {
      const { status, headers } = await get(`/pawl/${path}`);
      expect([path, status, headers.get("content-type")]).toEqual([path, 200, expect.not.stringContaining("html")]);
    }
  });

  test("answers HEAD with the headers of GET and no body", async () => {
    const get = await open();
    for (const path of ["/", `/${script}`]) {
      const [head, whole] = [await get(path, { method: "HEAD" }), await get(path)];
      expect([head.status, await head.text()]).toEqual([200, ""]);
      expect(Object.fromEntries(head.headers)).toEqual(Object.fromEntries(whole.headers));
    }
  });

  test("takes no other method", async () => {
    const get = await open();
    for (const method of ["POST", "PUT", "DELETE", "PATCH"])
      expect([method, (await get("/runs", { method })).status]).toEqual([method, 404]);
  });

  test("leaves the paths of the API to the API", async () => {
    const get = await open();
    for (const [path, status] of [
      ["/api/v1/runs", 200],
      ["/api/v1/nothing", 404],
      ["/api", 404],
      ["/live", 200],
      ["/live/x", 404],
      ["/ready", 200],
    ] as const) {
      const response = await get(path);
      expect([path, response.status, response.headers.get("content-type")]).toEqual([
        path,
        status,
        expect.stringContaining("json"),
      ]);
    }
  });
});

describe("a file", () => {
  test.each(files.filter((file) => file !== "index.html"))("%s is served as it was built", async (file) => {
    const get = await open({ basePath: "/pawl" });
    const response = await get(`/pawl/${file}`);
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(readFileSync(new URL(file, built)));
    const isHashed = file.startsWith("assets/");
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "cache-control": isHashed ? "private, max-age=31536000, immutable" : "no-store",
      "x-content-type-options": "nosniff",
      vary: "Accept-Encoding",
    });
  });

  test.each([
    ["js", "text/javascript; charset=utf-8"],
    ["css", "text/css; charset=utf-8"],
    ["svg", "image/svg+xml"],
    ["md", "text/plain; charset=utf-8"],
  ])("that ends with .%s has the type %s", async (ending, type) => {
    const get = await open();
    const file = files.find((one) => one.endsWith(`.${ending}`)) ?? expect.fail(`There is no .${ending}.`);
    expect((await get(`/${file}`)).headers.get("content-type")).toBe(type);
  });

  test("is compressed for clients that accept it", async () => {
    const get = await open();
    const whole = readFileSync(new URL(script, built));
    for (const accepted of ["gzip", "deflate, gzip;q=0.5, br"]) {
      const response = await get(`/${script}`, { headers: { "Accept-Encoding": accepted } });
      expect(response.headers.get("content-encoding")).toBe("gzip");
      const body = Buffer.from(await response.arrayBuffer());
      expect(body.length).toBeLessThan(whole.length / 2);
      expect(gunzipSync(body)).toEqual(whole);
    }
    for (const accepted of ["identity", "br", "gzip;q=0", "gzip; q=0.0, br"]) {
      const response = await get(`/${script}`, { headers: { "Accept-Encoding": accepted } });
      expect([accepted, response.headers.get("content-encoding")]).toEqual([accepted, null]);
    }
  });

  test("that the build does not have is not found, and no path leads out of the build", async () => {
    const served = await serve({ dashboard: true });
    const call = (path: string) => rawCall(served.url, `GET ${path}`, ["Host: localhost", "Connection: close"]);
    for (const path of [
      "/assets/nothing.js",
      "/assets/",
      "/assets/..%2fassets.json",
      "/assets/..%2f..%2fpackage.json",
      "/assets/%2e%2e%2f%2e%2e%2fpackage.json",
      "/assets/..%5c..%5cpackage.json",
      "/assets/%00",
      "/assets/__proto__",
      `/${script}%00`,
      `/${script}/`,
      `/${script.toUpperCase().replace("ASSETS", "assets")}`,
    ]) {
      const answer = await call(path);
      expect([path, answer.status, answer.headers["content-type"]]).toEqual([path, 404, "application/problem+json"]);
    }
    // A URL is normalized before it is matched, so these are paths outside of the files: the page, which has no data.
    for (const path of [
      "/assets/../../package.json",
      "/assets/%2e%2e/%2e%2e/package.json",
      "/..%2f..%2fpackage.json",
    ]) {
      const answer = await call(path);
      expect([path, answer.status, answer.headers["content-type"]]).toEqual([path, 200, "text/html; charset=utf-8"]);
      expect(answer.body).not.toContain("devDependencies");
    }
  });
});

describe("who is let in", () => {
  const paths = ["/", "/runs", `/${script}`, "/licenses.md"];

  test("is decided by authorize, for pages and files as for the API", async () => {
    const get = await open({ authorize: () => null });
    for (const path of paths) {
      const response = await get(path);
      expect([path, response.status, await response.json()]).toEqual([
        path,
        401,
        expect.objectContaining({ code: "UNAUTHORIZED" }),
      ]);
    }
  });

  test("an access that does not allow to read gets no page", async () => {
    const get = await open({ authorize: () => ({ access: "raed" }) as unknown as Authorization });
    for (const path of paths) {
      const response = await get(path);
      expect([path, response.status, await response.json()]).toEqual([
        path,
        403,
        expect.objectContaining({ code: "FORBIDDEN" }),
      ]);
    }
  });

  test.each([["read"], [[]], [{ start: true }]])("the access %j gets the page", async (access) => {
    const get = await open({ authorize: () => ({ access }) as Authorization });
    expect((await get("/")).status).toBe(200);
  });

  test("an answer of authorize is passed on, so that browsers come to a login", async () => {
    const headers = { Location: "/login", "Set-Cookie": "back=1" };
    const get = await open({ authorize: () => new Response(null, { status: 303, headers }) });
    const response = await get("/runs");
    expect([response.status, response.headers.get("location"), response.headers.get("set-cookie")]).toEqual([
      303,
      "/login",
      "back=1",
    ]);
  });

  test("without authorize, only this machine is served", async () => {
    const served = await serve({ dashboard: true });
    const statusWith = async (...headers: string[]) => (await rawCall(served.url, "GET /", headers)).status;
    expect(await statusWith("Host: localhost")).toBe(200);
    expect(await statusWith("Host: evil.example.com")).toBe(403);
    expect(await statusWith("Host: localhost", "X-Forwarded-For: 10.1.2.3")).toBe(403);
  });

  test("links on other sites lead to pages, but nothing of another site reads the API or runs the files", async () => {
    const get = await open();
    const from = (site: string, mode: string, dest: string) => ({
      headers: { "Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest },
    });
    for (const site of ["cross-site", "same-site"]) {
      const link = from(site, "navigate", "document");
      expect((await get("/runs/01a1", link)).status).toBe(200);
      expect((await get("/api/v1/runs", link)).status).toBe(403);
      expect((await get("/runs", { method: "POST", ...link })).status).toBe(403);
      for (const [mode, dest] of [
        ["navigate", "iframe"],
        ["no-cors", "script"],
        ["cors", "empty"],
      ] as const)
        expect((await get(`/${script}`, from(site, mode, dest))).status).toBe(403);
    }
  });
});

describe("how it presents itself", () => {
  test("label, colour and title are in the page, as text", async () => {
    const dashboard = { label: `<b>"pro'd" & co`, color: "red", title: "$& </title><script>" } as const;
    const get = await open({ dashboard });
    const page = await (await get("/")).text();
    const [, content = ""] = /name="pawl-settings" content="([^"]*)"/.exec(page) ?? [];
    expect(content).not.toMatch(/[<>"']/);
    expect(page).not.toContain("</title><script>");
    const text = content.replace(/&#(\d+);/g, (_all, code: string) => String.fromCharCode(Number(code)));
    expect(JSON.parse(text)).toEqual(dashboard);
  });

  test.each<[dashboard: unknown, message: string]>([
    ["yes", "httpHandler({ dashboard }) must be true, or an object with options."],
    [null, "httpHandler({ dashboard }) must be true, or an object with options."],
    [{ lable: "production" }, 'httpHandler({ dashboard }) has no option "lable"'],
    [{ label: "" }, "httpHandler({ dashboard: { label } }) must be a text of at most 60 characters."],
    [{ label: "x".repeat(61) }, "httpHandler({ dashboard: { label } }) must be a text of at most 60 characters."],
    [{ title: 5 }, "httpHandler({ dashboard: { title } }) must be a text of at most 60 characters."],
    [{ color: "pink" }, "httpHandler({ dashboard: { color } }) must be one of red, amber, green, blue, violet, grey."],
  ])("%j is refused", async (dashboard, message) => {
    await expect(open({ dashboard } as HttpOptions)).rejects.toThrow(message);
  });
});

test.each([false, undefined])("with dashboard: %s there are no pages", async (dashboard) => {
  const get = await open({ dashboard } as HttpOptions);
  for (const path of ["/", "/runs", `/${script}`, "/index.html", "/licenses.md"])
    expect([path, (await get(path)).status]).toEqual([path, 404]);
});
