import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";

const here = fileURLToPath(new URL(".", import.meta.url));

/** Lists the built files, because the server answers only with files that are in this list (src/http/dashboard/assets.ts). */
function assetList(): Plugin {
  return {
    name: "pawl-asset-list",
    generateBundle(_options, bundle) {
      const files = Object.keys(bundle).filter((name) => !name.endsWith(".map"));
      if (!files.includes("index.html")) files.push("index.html");
      this.emitFile({ type: "asset", fileName: "assets.json", source: `${JSON.stringify(files.sort(), null, 2)}\n` });
    },
  };
}

export default defineConfig({
  root: here,
  // Relative, so that the page works under any base path.
  base: "./",
  plugins: [assetList()],
  css: { modules: { localsConvention: "camelCaseOnly" } },
  worker: { format: "es" },
  build: {
    outDir: "../dist/dashboard",
    emptyOutDir: true,
    target: "es2022",
    // Data URLs would need exceptions in the content security policy.
    assetsInlineLimit: 0,
    // The polyfill is inline script, which the content security policy refuses; every browser of the target preloads modules.
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.md" },
  },
});
