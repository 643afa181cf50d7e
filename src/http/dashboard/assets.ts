/**
 * The files of the dashboard, as vite has built them. Only files that are in the list of the build are ever read, so no path
 * of a request reaches the disk.
 */
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const contentTypes: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json",
  // Some browsers do not show other types of text, but save them.
  md: "text/plain; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
};

export interface Asset {
  readonly contentType: string;
  readonly content: Uint8Array;
  readonly gzipped: Uint8Array;
}

/** Where the build is: beside the published library, or, if the sources run (in tests), in the folder that is published. */
const folders = ["../../dashboard/", "../../../dist/dashboard/"].map((path) => new URL(path, import.meta.url));

export class Assets {
  readonly #folder: URL;
  readonly #names: ReadonlySet<string>;
  readonly #read = new Map<string, Asset>();

  private constructor(folder: URL) {
    this.#folder = folder;
    this.#names = new Set(JSON.parse(readFileSync(new URL("assets.json", folder), "utf8")) as string[]);
  }

  /** @returns null if the dashboard was not built */
  static open(): Assets | null {
    const folder = folders.find((candidate) => existsSync(fileURLToPath(new URL("assets.json", candidate))));
    return folder === undefined ? null : new Assets(folder);
  }

  /** @param name the path of the file in the build, such as "assets/index-1a2b3c.js" */
  find(name: string): Asset | null {
    if (!this.#names.has(name)) return null;
    let asset = this.#read.get(name);
    if (asset === undefined) {
      const content = readFileSync(new URL(name, this.#folder));
      const contentType = contentTypes[name.slice(name.lastIndexOf(".") + 1)] ?? "application/octet-stream";
      asset = { contentType, content, gzipped: gzipSync(content) };
      this.#read.set(name, asset);
    }
    return asset;
  }
}
