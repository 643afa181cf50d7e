/**
 * Collects the licences of all packages whose code is in the build. Vite's own list leaves out the code of web workers, and
 * what a package has bundled itself.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Plugin } from "vite";

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

export class Licenses {
  readonly #folders = new Set<string>();

  /** Notes the packages of a build; the page and each web worker are builds of their own. */
  collector(): Plugin {
    return {
      name: "pawl-licenses",
      generateBundle: (_options, bundle) => {
        for (const chunk of Object.values(bundle))
          if (chunk.type === "chunk") for (const id of chunk.moduleIds) this.#addModule(id);
      },
    };
  }

  text(): string {
    const parts = [...this.#folders].sort().map((folder) => {
      const { name, version, license } = manifestOf(folder);
      const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
      if (file === undefined) throw new Error(`${name} has no file with its licence, so it cannot be shipped.`);
      return `## ${name} ${version} (${license})\n\n${readFileSync(join(folder, file), "utf8").trim()}\n`;
    });
    return ["# Licences of the software in the dashboard\n", ...parts].join("\n");
  }

  #addModule(id: string): void {
    const [, folder] = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id) ?? [];
    if (folder !== undefined && !id.startsWith("\0")) this.#addPackage(folder);
  }

  /** A package may contain a copy of what it depends on. */
  #addPackage(folder: string): void {
    if (this.#folders.has(folder)) return;
    this.#folders.add(folder);
    for (const name of Object.keys(manifestOf(folder).dependencies ?? {})) {
      const dependency = findPackage(name, folder);
      if (dependency !== null) this.#addPackage(dependency);
    }
  }
}

const manifestOf = (folder: string) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;

function findPackage(name: string, from: string): string | null {
  const folder = join(from, "node_modules", name);
  if (existsSync(join(folder, "package.json"))) return folder;
  return dirname(from) === from ? null : findPackage(name, dirname(from));
}
