/** `npm run simulate`: see `usage`. */
import { fork } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { addCounts, type Counts, requiredCoverage } from "./coverage.js";
import { runSeed, type SeedOptions, type SeedResult } from "./run-seed.js";
import { commandOf, seedOptionsOf } from "./seed-command.js";
import { shrink } from "./shrink.js";

const usage = `npm run simulate -- [options]
  --seeds N          how many seeds (default 1,000)
  --from N           the first seed (default 1)
  --jobs N           how many processes (default 1)
  --progress FILE    keeps what is done in this file; the same command then goes on where it was interrupted
  --seed N           one seed only; with --trace it prints all that happened
  --drop a,b         with --seed: items of its plan that are left out
  --without a,b      with --seed: kinds of faults that are left out
  --max-faults N     with --seed: only the first faults are injected
  --keep-going       do not stop at the first violation
  --mutants          finds versions of the library with a bug each; --mutants --help says more`;

/** So many seeds are one unit of work. */
const chunkSize = 100;

interface ChunkResult {
  readonly chunk: number;
  readonly seeds: number;
  readonly events: number;
  readonly failing: readonly Pick<SeedResult, "seed" | "violations">[];
  readonly coverage: Counts;
}

interface Progress {
  readonly from: number;
  readonly seeds: number;
  /** How long the campaign took so far, in seconds. */
  seconds: number;
  readonly chunks: Record<number, ChunkResult>;
}

async function runChunk(chunk: number, from: number, seeds: number): Promise<ChunkResult> {
  const coverage: Counts = {};
  const failing: Pick<SeedResult, "seed" | "violations">[] = [];
  let events = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    const result = await runSeed({ seed });
    addCounts(coverage, result.coverage);
    events += result.events;
    if (result.violations.length > 0) failing.push({ seed, violations: result.violations });
  }
  return { chunk, seeds, events, failing, coverage };
}

async function runOne(options: SeedOptions, printsTrace: boolean): Promise<number> {
  const result = await runSeed({ ...options, keepsTrace: printsTrace });
  for (const line of result.trace) console.log(line);
  for (const { invariant, run, text } of result.violations) console.log(`${invariant} ${run ?? ""} ${text}`);
  console.log(
    `Seed ${options.seed}: ${result.events} events, ${result.faults} faults of calls and hints, ${result.violations.length} violations, trace ${result.hash}.`,
  );
  return result.violations.length === 0 ? 0 : 1;
}

async function campaign(
  from: number,
  seeds: number,
  jobs: number,
  file: string | undefined,
  keepsGoing: boolean,
): Promise<number> {
  const progress: Progress =
    file !== undefined && existsSync(file)
      ? JSON.parse(readFileSync(file, "utf8"))
      : { from, seeds, seconds: 0, chunks: {} };
  if (progress.from !== from || progress.seeds !== seeds) {
    console.error(`${file} belongs to --from ${progress.from} --seeds ${progress.seeds}.`);
    return 2;
  }
  const began = performance.now();
  const secondsBefore = progress.seconds;
  const chunks = Array.from({ length: Math.ceil(seeds / chunkSize) }, (_, chunk) => chunk).filter(
    (chunk) => progress.chunks[chunk] === undefined,
  );
  const note = (result: ChunkResult) => {
    progress.chunks[result.chunk] = result;
    progress.seconds = secondsBefore + (performance.now() - began) / 1_000;
    if (file !== undefined) writeFileSync(file, JSON.stringify(progress));
    for (const { seed, violations } of result.failing) {
      console.log(`Seed ${seed} fails:`);
      for (const { invariant, run, text } of violations.slice(0, 5))
        console.log(`  ${invariant} ${run ?? ""} ${text.slice(0, 300)}`);
    }
    const done = Object.values(progress.chunks);
    if (done.length % 10 === 0)
      console.log(`${done.reduce((sum, chunk) => sum + chunk.seeds, 0)} seeds, ${progress.seconds.toFixed(0)} s`);
    if (result.failing.length > 0 && !keepsGoing) chunks.length = 0;
  };
  const sizeOf = (chunk: number) => Math.min(chunkSize, seeds - chunk * chunkSize);
  const work = async (run: (chunk: number) => Promise<ChunkResult>) => {
    for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) note(await run(chunk));
  };
  if (jobs <= 1) await work((chunk) => runChunk(chunk, from + chunk * chunkSize, sizeOf(chunk)));
  else await Promise.all(Array.from({ length: jobs }, () => inProcess((run) => work(run), from, sizeOf)));
  return judge(progress);
}

/** A process of its own that runs one chunk after the other. */
async function inProcess(
  work: (run: (chunk: number) => Promise<ChunkResult>) => Promise<void>,
  from: number,
  sizeOf: (chunk: number) => number,
): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ["--worker"], { stdio: "inherit" });
  await work(
    (chunk) =>
      new Promise((resolve, reject) => {
        child.once("message", (result) => {
          child.removeAllListeners("exit");
          resolve(result as ChunkResult);
        });
        child.once("exit", (code) => reject(new Error(`A process of the simulation ended with code ${code}.`)));
        child.send({ chunk, from: from + chunk * chunkSize, seeds: sizeOf(chunk) });
      }),
  );
  child.removeAllListeners("exit");
  child.disconnect();
}

async function judge(progress: Progress): Promise<number> {
  const chunks = Object.values(progress.chunks);
  const coverage: Counts = {};
  for (const chunk of chunks) addCounts(coverage, chunk.coverage);
  const failing = chunks.flatMap((chunk) => chunk.failing).sort((a, b) => a.seed - b.seed);
  const seeds = chunks.reduce((sum, chunk) => sum + chunk.seeds, 0);
  const events = chunks.reduce((sum, chunk) => sum + chunk.events, 0);
  for (const name of Object.keys(coverage).sort()) console.log(`${String(coverage[name]).padStart(9)}  ${name}`);
  console.log(`${seeds} seeds, ${events} events, ${progress.seconds.toFixed(0)} s: ${failing.length} with violations.`);
  const missing = requiredCoverage.filter((name) => (coverage[name] ?? 0) === 0);
  if (missing.length > 0) console.log(`Never exercised: ${missing.join("; ")}.`);
  const [first] = failing;
  if (first !== undefined) {
    const smallest = await shrink(await runSeed({ seed: first.seed }));
    console.log(`The smallest world that fails: ${commandOf(smallest)}`);
  }
  return failing.length + missing.length === 0 ? 0 : 1;
}

const { values } = parseArgs({
  options: {
    seeds: { type: "string", default: "1000" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    progress: { type: "string" },
    seed: { type: "string" },
    drop: { type: "string" },
    without: { type: "string" },
    "max-faults": { type: "string" },
    trace: { type: "boolean", default: false },
    "keep-going": { type: "boolean", default: false },
    worker: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

if (values.worker) {
  process.on("message", (task: { chunk: number; from: number; seeds: number }) => {
    void runChunk(task.chunk, task.from, task.seeds).then((result) => process.send?.(result));
  });
} else if (values.help) console.log(usage);
else {
  const code =
    values.seed === undefined
      ? await campaign(
          Number(values.from),
          Number(values.seeds),
          Number(values.jobs),
          values.progress,
          values["keep-going"],
        )
      : await runOne(seedOptionsOf({ ...values, seed: values.seed }), values.trace);
  // A pipe may not have taken all of a long trace yet.
  process.stdout.write("", () => process.exit(code));
}
