/** `pawl dashboard`, and the dashboard of `pawl dev`: where it is served, to whom, and how it ends. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { connect } from "pawl";
import { expect, onTestFinished, test } from "vitest";
import { until } from "../support/waiting.js";
import { type CliProcess, errorIn, type Folder, newFolder, workflows } from "./command-line.js";
import { silent } from "./sample-runs.js";

/** The first event that a command with --json prints. */
async function firstEvent(process: CliProcess, name: string): Promise<any> {
  await process.until(name);
  return JSON.parse(process.stdout.split("\n").find((line) => line.includes(name)) as string);
}

async function beginDashboard(folder: Folder, ...args: readonly string[]) {
  const dashboard = folder.begin(["dashboard", "--port", "0", "--json", ...args]);
  const { url, ...event } = await firstEvent(dashboard, "dashboard.started");
  return { dashboard, url: url as string, event };
}

async function migratedFolder(): Promise<Folder> {
  const folder = newFolder();
  await folder.text("migrate");
  return folder;
}

/** A database with one run that no worker executes. */
async function folderWithRun(): Promise<{ readonly folder: Folder; readonly id: string }> {
  const folder = newFolder();
  const pawl = await connect(folder.url, { logger: silent });
  await pawl.createWorkflow("order");
  const { id } = await pawl.workflow("order").trigger(1);
  await pawl.close();
  return { folder, id };
}

const settingsIn = (page: string) =>
  /name="pawl-settings" content="(.*?)"/.exec(page)?.[1]?.replaceAll("&#34;", '"') ?? "";

/** Takes a port, as another program would. */
async function takePort(port: number): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  return server;
}

test("dashboard serves the page and the API of the configured database, without a worker, until it is stopped", async () => {
  const { folder, id } = await folderWithRun();
  const { dashboard, url, event } = await beginDashboard(folder, "--label", "production");
  expect(event).toEqual({ event: "dashboard.started", database: "sqlite ./pawl.db", readOnly: false });
  const page = await (await fetch(url)).text();
  expect(JSON.parse(settingsIn(page))).toEqual({ label: "production" });
  const { runs } = (await (await fetch(`${url}api/v1/runs`)).json()) as any;
  expect(runs).toMatchObject([{ id, status: "pending" }]);
  expect(await folder.json("workers", "--all")).toEqual([]);
  // An open stream does not keep it from stopping.
  const stream = await fetch(`${url}api/v1/changes`);
  const { code, stdout, stderr } = await dashboard.stop();
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout).toContain('{"event":"dashboard.stopped","signal":"SIGINT"}');
  await expect(stream.text()).rejects.toThrow();
});

test("dashboard prints its address, and whether it changes anything", async () => {
  const folder = await migratedFolder();
  const dashboard = folder.begin(["dashboard", "--port", "0", "--read-only"]);
  await dashboard.until("Ctrl-C stops it.");
  dashboard.signal("SIGTERM");
  const { code, stdout } = await dashboard.exited;
  expect([code, stdout.split("\n")]).toEqual([
    0,
    [
      expect.stringMatching(/^Dashboard: http:\/\/127\.0\.0\.1:\d+\/$/),
      "It shows sqlite ./pawl.db to browsers on this machine only, and changes nothing. Ctrl-C stops it.",
      "The dashboard has stopped.",
      "",
    ],
  ]);
});

test("commands from the dashboard are recorded with the name of the account; --read-only allows none", async () => {
  const { folder, id } = await folderWithRun();
  const pause = (url: string) =>
    fetch(`${url}api/v1/runs/${id}/pause`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ reason: "lunch" }),
    });
  const reader = await beginDashboard(folder, "--read-only");
  expect((await pause(reader.url)).status).toBe(403);
  expect((await fetch(`${reader.url}api/v1/runs/${id}`)).status).toBe(200);
  const { url } = await beginDashboard(folder);
  expect((await pause(url)).status).toBe(200);
  const { events } = (await (await fetch(`${url}api/v1/runs/${id}/history`)).json()) as any;
  expect(JSON.stringify(events)).toContain(`"by":${JSON.stringify(userInfo().username)}`);
});

test.each([["--debug"], ["--read-only"]])(
  "with %j, requests for another host and requests through a proxy are refused",
  async (...args) => {
    const folder = await migratedFolder();
    const { url } = await beginDashboard(folder, ...args);
    for (const header of ["X-Forwarded-For: 10.1.2.3", "Host: ops.example.com"]) {
      for (const path of ["", "api/v1/runs"])
        expect([header, path, await statusWith(url + path, header)]).toEqual([header, path, 403]);
    }
    expect(await statusWith(url, "Host: localhost")).toBe(200);
  },
);

/** `fetch` does not send another `Host`. */
async function statusWith(url: string, header: string): Promise<number> {
  const { get } = await import("node:http");
  const [name = "", value = ""] = header.split(": ");
  return new Promise((resolve, reject) => {
    const request = get(url, { headers: { [name]: value } }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.once("error", reject);
  });
}

test("a port that is taken is refused if it was given; otherwise the next free one is taken", async () => {
  const folder = await migratedFolder();
  const { port } = (await takePort(0)).address() as AddressInfo;
  expect(errorIn(await folder.begin(["dashboard", "--port", String(port)]).exited)).toBe(
    `Port ${port} is taken; give --port another, or leave it out to get a free one.`,
  );
  const [one, two] = await Promise.all(
    [1, 2].map(() => firstEvent(folder.begin(["dashboard", "--json"]), "dashboard.started")),
  );
  expect(one.url).not.toBe(two.url);
  for (const { url } of [one, two]) expect((await fetch(url)).status).toBe(200);
});

test("with files, the inputs of runs that are started in the dashboard are checked by the schemas of their workflows", async () => {
  const folder = await migratedFolder();
  const file = folder.write(
    "workflows.mjs",
    `import { workflow } from "pawl";
     const input = { "~standard": { version: 1, vendor: "test", validate: (value) =>
       typeof value === "number" ? { value } : { issues: [{ message: "must be a number" }] } } };
     export const count = workflow("count", { input }, async (ctx, n) => n);`,
  );
  const { url } = await beginDashboard(folder, file);
  const start = (input: unknown) =>
    fetch(`${url}api/v1/workflows/count/runs`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ input }),
    });
  expect((await start(1)).status).toBe(201);
  const refused = await start("one");
  expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("must be a number")]);
});

test("dev serves the dashboard while its worker restarts", async () => {
  const folder = newFolder();
  const workflow = (name: string) =>
    `import { workflow } from "pawl";\nexport const ${name} = workflow("${name}", async () => 1);\n`;
  folder.write("workflows.mjs", workflow("one"));
  const dev = folder.begin(["dev", "--port", "0", "--json"]);
  const { dashboard: url } = await firstEvent(dev, "worker.started");
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  const liveWorkers = async () => {
    const { workers } = (await (await fetch(`${url}api/v1/workers`)).json()) as any;
    return workers.filter(({ live }: any) => live).map(({ workflows }: any) => workflows.map(({ name }: any) => name));
  };
  expect(await liveWorkers()).toEqual([["one"]]);
  folder.write("workflows.mjs", workflow("two"));
  await until(async () => JSON.stringify(await liveWorkers()) === '[["two"]]');
  expect((await fetch(url)).headers.get("content-type")).toBe("text/html; charset=utf-8");
  const stream = await fetch(`${url}api/v1/changes`);
  const { code, stdout, stderr } = await dev.stop();
  expect([code, stderr]).toEqual([0, ""]);
  await stream.text().catch(() => {});
  const starts = stdout.split("\n").filter((line) => line.includes("worker.started"));
  expect(starts.map((line) => JSON.parse(line).dashboard)).toEqual([url, url]);
});

test("dev prints the address of the dashboard below what its worker serves", async () => {
  const folder = newFolder();
  const dev = folder.begin(["dev", workflows]);
  await dev.until("the worker restarts with it.");
  const [serves, address] = (await dev.stop()).stdout.split("\n");
  expect(serves).toMatch(/^Worker \S+ serves /);
  expect(address).toMatch(/^Dashboard: http:\/\/127\.0\.0\.1:\d+\/$/);
});

test.each([["--no-dashboard"], ["--url=memory:"]])("dev with %s serves no dashboard", async (option) => {
  const dev = newFolder().begin(["dev", workflows, option, "--json"]);
  expect((await firstEvent(dev, "worker.started")).dashboard).toBeNull();
  await dev.stop();
});

test("dev with a port that is taken does not start", async () => {
  const folder = newFolder();
  const { port } = (await takePort(0)).address() as AddressInfo;
  const answer = await folder.begin(["dev", workflows, "--port", String(port)]).exited;
  expect(errorIn(answer)).toBe(`Port ${port} is taken; give --port another, or leave it out to get a free one.`);
  expect([answer.stdout, folder.has("pawl.db")]).toEqual(["", false]);
});
