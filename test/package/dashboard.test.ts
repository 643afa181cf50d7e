/** The build of the dashboard, as it is published: its files, their size, and the licences of what it contains. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

const root = new URL("../../", import.meta.url);
const built = new URL("dist/dashboard/", root);
const read = (name: string) => readFileSync(new URL(name, built));
const listed = JSON.parse(read("assets.json").toString()) as string[];

const filesIn = (folder: URL) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => `${parentPath}/${name}`.replaceAll("\\", "/"))
    .map((path) => path.slice(path.indexOf("dist/dashboard/") + "dist/dashboard/".length).replace(/^\/+/, ""));

test("the list of files has every file of the build, and no other", () => {
  expect(
    filesIn(built)
      .filter((file) => file !== "assets.json")
      .sort(),
  ).toEqual([...listed].sort());
});

test("what browsers load is less than 300 kB when compressed", () => {
  const assets = listed.filter((file) => file.startsWith("assets/"));
  const sizes = assets.map((file) => [file, gzipSync(read(file)).length] as const);
  const total = sizes.reduce((sum, [, bytes]) => sum + bytes, 0);
  expect(total, `the sizes are ${JSON.stringify(Object.fromEntries(sizes))}`).toBeLessThan(300_000);
});

test("nothing is loaded from another server", () => {
  for (const file of listed.filter((one) => /\.(?:js|css|html)$/.test(one))) {
    const text = read(file).toString();
    expect([file, text.match(/(?:src|href)="(?:https?:)?\/\/[^"]*|@import|url\(["']?(?:https?:)?\/\//g)]).toEqual([
      file,
      null,
    ]);
    expect([file, text.match(/\bimport\(["'`](?:https?:)?\/\//g)]).toEqual([file, null]);
  }
});

test("the licence of every package in the build is published with it", () => {
  const licenses = read("licenses.md").toString();
  const { devDependencies, dependencies = {} } = JSON.parse(readFileSync(new URL("package.json", root), "utf8"));
  expect(dependencies).toEqual({});
  const used = ["preact", "@preact/signals", "@dagrejs/dagre", "uplot"].filter((name) => isImported(name));
  expect(used).toEqual(expect.arrayContaining(["preact", "@preact/signals"]));
  for (const name of used) expect(licenses).toContain(`## ${name} ${devDependencies[name]} (MIT)`);
  expect(licenses.match(/^## /gm)?.length).toBe(licenses.match(/Permission is hereby granted/g)?.length);
});

function isImported(name: string): boolean {
  const sources = new URL("dashboard/src/", root);
  return readdirSync(sources, { recursive: true, encoding: "utf8" })
    .filter((file) => /\.tsx?$/.test(file))
    .some((file) =>
      new RegExp(`from "${name}(?:/|")|import\\("${name}`).test(readFileSync(new URL(file, sources), "utf8")),
    );
}

test("the files are read when the dashboard is first served, and not when pawl/http is imported", async () => {
  const program = `
    import fs from "node:fs";
    import { syncBuiltinESMExports } from "node:module";
    const read = [];
    for (const name of ["readFileSync", "existsSync"]) {
      const original = fs[name];
      fs[name] = (path, ...rest) => {
        if (String(path).includes("dist/dashboard")) read.push(String(path));
        return original(path, ...rest);
      };
    }
    syncBuiltinESMExports();
    const { httpHandler } = await import("${new URL("dist/http/index.js", root)}");
    const { connect } = await import("${new URL("dist/index.js", root)}");
    const pawl = await connect("memory:");
    httpHandler(pawl);
    const before = read.length;
    httpHandler(pawl, { dashboard: true });
    console.log(JSON.stringify({ before, after: read.length > 0 }));
    await pawl.close();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", program], {
    cwd: fileURLToPath(root),
  });
  expect(JSON.parse(stdout)).toEqual({ before: 0, after: true });
});
