import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import { Licenses } from "./licenses.js";

const here = fileURLToPath(new URL(".", import.meta.url));
const licenses = new Licenses();

/**
 * Adds the licences, and a list of all files, because the server answers only with files that are in this list
 * (src/http/dashboard/assets.ts).
 */
function assetList(): Plugin {
  return {
    name: "pawl-asset-list",
    writeBundle: ({ dir = "" }) => {
      writeFileSync(join(dir, "licenses.md"), licenses.text());
      const files = readdirSync(dir, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name).slice(join(dir, "/").length).replaceAll("\\", "/"))
        .filter((name) => name !== "assets.json");
      writeFileSync(join(dir, "assets.json"), `${JSON.stringify(files.sort(), null, 2)}\n`);
    },
  };
}

export default defineConfig({
  root: here,
  // Relative, so that the page works under any base path.
  base: "./",
  plugins: [licenses.collector(), assetList()],
  css: { modules: { localsConvention: "camelCaseOnly" } },
  worker: { format: "es", plugins: () => [licenses.collector()] },
  build: {
    outDir: "../dist/dashboard",
    emptyOutDir: true,
    target: "es2022",
    // Data URLs would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    // The polyfill is inline script, which the content security policy refuses; every browser of the target preloads modules.
    modulePreload: { polyfill: false },
  },
});
