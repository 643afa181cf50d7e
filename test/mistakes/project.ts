/** A strict TypeScript project that installs Pawl from its tarball and has nothing else of this repository. */
import { execFile } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Host } from "../cli/command-line.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const here = fileURLToPath(new URL(".", import.meta.url));
const run = promisify(execFile);

/** What every mistake can use. */
const imports = `import { branch, connect, graph, job, type Pawl, PauseError, schedule, step, TransientError, Workflow, workflow } from "pawl";
import { testPawl } from "pawl/testing";
import { ada, approved, finished, Goodbye, mail, Onboarding, order, paused, positive, resize, type User, users } from "./shop.js";

export default async function mistake(pawl: Pawl): Promise<unknown> {
`;

/** What the runner printed for one mistake. */
export interface Answer {
  /** null: nothing was refused. */
  readonly sentence: string | null;
  readonly name?: string;
  readonly code?: string | null;
}

export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), "pawl-mistakes-"));
  #host: Host | null = null;

  /** `npm test` has built the library, so the tarball contains `dist`. */
  async install(): Promise<void> {
    const packed = ["pack", "--ignore-scripts", "--silent", "--pack-destination", this.folder];
    await run("npm", packed, { cwd: root });
    const tarball = readdirSync(this.folder).find((name) => name.endsWith(".tgz")) as string;
    const modules = join(this.folder, "node_modules");
    mkdirSync(join(modules, "pawl"), { recursive: true });
    await run("tar", ["-xzf", join(this.folder, tarball), "-C", join(modules, "pawl"), "--strip-components=1"]);
    mkdirSync(join(modules, "@types"));
    symlinkSync(join(root, "node_modules/@types/node"), join(modules, "@types/node"));
    symlinkSync(join(root, "node_modules/undici-types"), join(modules, "undici-types"));
    this.#write("package.json", JSON.stringify({ name: "shop", private: true, type: "module" }));
    this.#write(
      "tsconfig.json",
      JSON.stringify({
        compilerOptions: {
          strict: true,
          target: "es2022",
          module: "nodenext",
          types: ["node"],
          rootDir: ".",
          outDir: "out",
        },
        include: ["*.ts"],
      }),
    );
    copyFileSync(join(here, "shop.ts"), join(this.folder, "shop.ts"));
    copyFileSync(join(here, "runner.mjs"), join(this.folder, "runner.mjs"));
  }

  add(name: string, code: string): void {
    const lines = code.split("\n").map((line) => `  ${line}`);
    this.#write(`${name}.ts`, `${imports}${lines.join("\n")}\n  return undefined;\n}\n`);
  }

  #write(name: string, text: string): void {
    writeFileSync(join(this.folder, name), text);
  }

  /** The compiler's messages for each file, as one text; files without errors are missing. */
  async compile(): Promise<ReadonlyMap<string, string>> {
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    const output = await run(process.execPath, [tsc, "-p", "tsconfig.json", "--pretty", "false"], {
      cwd: this.folder,
      maxBuffer: 64 * 1024 * 1024,
    }).then(
      ({ stdout }) => stdout,
      ({ stdout }: { stdout: string }) => stdout,
    );
    const complaints = new Map<string, string>();
    for (const complaint of output.split(/^(?=\S+\(\d+,\d+\): error)/m)) {
      const [, file, text] = /^(\S+)\.ts\(\d+,\d+\): error ([\s\S]*)$/.exec(complaint.trim()) ?? [];
      if (file === undefined) continue;
      complaints.set(file, [complaints.get(file), text].filter((one) => one !== undefined).join("\n"));
    }
    return complaints;
  }

  /** Runs these mistakes in one process and returns the answer to each. */
  async answers(names: readonly string[]): Promise<Readonly<Record<string, Answer>>> {
    const { stdout } = await run(process.execPath, ["runner.mjs", ...names], { cwd: this.folder });
    return JSON.parse(stdout) as Record<string, Answer>;
  }

  /** Runs the command line in a folder of its own with these files. */
  async cli(
    args: readonly string[],
    files: Readonly<Record<string, string>>,
  ): Promise<{ code: number | null; stderr: string }> {
    const cwd = mkdtempSync(join(this.folder, "cli-"));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text);
    this.#host ??= new Host(join(this.folder, "node_modules/pawl/dist/cli/program.js"));
    return this.#host.run(cwd, args, { NO_COLOR: "1" });
  }

  remove(): void {
    this.#host?.end();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
