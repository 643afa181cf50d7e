/**
 * What a campaign has done, kept in a file: a line that says which campaign it is, and a line for each chunk of seeds. A process that is killed
 * loses the chunks that it was working on, and nothing else.
 */
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Counts } from "./coverage.js";
import type { FaultRates } from "./kernel/faults.js";
import type { SeedResult } from "./run-seed.js";

export interface ChunkResult {
  readonly chunk: number;
  readonly seeds: number;
  readonly events: number;
  readonly failing: readonly Pick<SeedResult, "seed" | "violations">[];
  readonly coverage: Counts;
}

export interface CampaignId {
  readonly from: number;
  readonly seeds: number;
  readonly rates: FaultRates;
  /** A hash of the simulated code: results of different code do not add up. */
  readonly code: string;
}

/** How long the campaign has taken when the chunk was done, in seconds, without the time between its processes. */
type ChunkLine = ChunkResult & { readonly seconds: number };

export class Progress {
  readonly #file: string;
  readonly #chunks = new Map<number, ChunkResult>();
  readonly #secondsBefore: number;
  readonly #began = performance.now();

  /** Goes on with the campaign in the file, unless that is another one. */
  constructor(file: string, id: CampaignId) {
    this.#file = file;
    const lines = readLines(file);
    const [first, ...rest] = lines;
    if (first !== JSON.stringify(id)) {
      rmSync(file, { force: true });
      mkdirSync(dirname(file), { recursive: true });
      this.#append(id);
      this.#secondsBefore = 0;
      return;
    }
    const chunks = rest.map((line) => JSON.parse(line) as ChunkLine);
    for (const chunk of chunks) this.#chunks.set(chunk.chunk, chunk);
    this.#secondsBefore = chunks.at(-1)?.seconds ?? 0;
  }

  get chunks(): readonly ChunkResult[] {
    return [...this.#chunks.values()];
  }

  get seeds(): number {
    return this.chunks.reduce((sum, { seeds }) => sum + seeds, 0);
  }

  get seconds(): number {
    return this.#secondsBefore + (performance.now() - this.#began) / 1_000;
  }

  has(chunk: number): boolean {
    return this.#chunks.has(chunk);
  }

  add(result: ChunkResult): void {
    this.#chunks.set(result.chunk, result);
    this.#append({ ...result, seconds: this.seconds } satisfies ChunkLine);
  }

  /** The same command then begins anew. */
  forget(): void {
    rmSync(this.#file, { force: true });
  }

  #append(line: object): void {
    appendFileSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/** The whole lines of the file. What a process that was killed has not written to its end is cut off, so that the next line begins where it did. */
function readLines(file: string): readonly string[] {
  if (!existsSync(file)) return [];
  const text = readFileSync(file);
  const end = text.lastIndexOf("\n") + 1;
  if (end < text.length) truncateSync(file, end);
  return text
    .subarray(0, end)
    .toString()
    .split("\n")
    .filter((line) => line !== "");
}

/** A hash of compiled files. */
export function hashOf(folders: readonly string[]): string {
  const hash = createHash("sha256");
  for (const folder of folders) {
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".js"));
    for (const file of files.sort()) hash.update(file).update(readFileSync(join(folder, file)));
  }
  return hash.digest("hex").slice(0, 16);
}
