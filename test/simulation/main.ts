/** `npm run simulate`: see `usage`. */
import { fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { addCounts, type Counts, requiredCoverage } from "./coverage.js";
import type { FaultRates } from "./kernel/faults.js";
import { type ChunkResult, hashOf, Progress } from "./progress.js";
import { runSeed, type SeedOptions, type SeedResult } from "./run-seed.js";
import { commandOf, ratesOf, seedOptionsOf } from "./seed-command.js";
import { shrink } from "./shrink.js";

const usage = `npm run simulate -- [options]
  --seeds N          how many seeds (default 1,000)
  --from N           the first seed (default 1)
  --jobs N           how many processes (default 1)
  --progress FILE    where a campaign keeps what it has done (default .simulation/campaign-FROM-SEEDS.jsonl). The same command goes on
                     where it was interrupted or killed, unless the code has changed since; the file is removed at the end
  --seed N           one seed only; with --trace it prints all that happened
  --rates a=R,b=R    how often kinds of faults are injected, instead of as often as the seed says; for example late-commit=0.1
  --drop a,b         with --seed: items of its plan that are left out
  --without a,b      with --seed: kinds of faults that are left out
  --max-faults N     with --seed: only the first faults are injected
  --keep-going       do not stop at the first violation, or go on with a campaign that has
  --mutants          finds versions of the library with a bug each; --mutants --help says more`;

/** So many seeds are one unit of work. */
const chunkSize = 100;

interface Task {
  readonly chunk: number;
  readonly from: number;
  readonly seeds: number;
  readonly rates: FaultRates;
}

async function runChunk({ chunk, from, seeds, rates }: Task): Promise<ChunkResult> {
  const coverage: Counts = {};
  const failing: Pick<SeedResult, "seed" | "violations">[] = [];
  let events = 0;
  for (let seed = from; seed < from + seeds; seed += 1) {
    const result = await runSeed({ seed, rates });
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

interface CampaignOptions {
  readonly from: number;
  readonly seeds: number;
  readonly rates: FaultRates;
  readonly jobs: number;
  readonly file: string;
  readonly keepsGoing: boolean;
}

async function campaign({ from, seeds, rates, jobs, file, keepsGoing }: CampaignOptions): Promise<number> {
  const compiled = fileURLToPath(new URL("../..", import.meta.url));
  const code = hashOf([join(compiled, "src"), join(compiled, "test")]);
  const progress = new Progress(file, { from, seeds, rates, code });
  if (progress.seeds > 0) console.log(`Goes on after ${progress.seeds} seeds (${file}).`);
  progress.chunks.forEach(printFailing);
  const all = Array.from({ length: Math.ceil(seeds / chunkSize) }, (_, chunk) => chunk);
  const hasFailed = progress.chunks.some(({ failing }) => failing.length > 0);
  const chunks = hasFailed && !keepsGoing ? [] : all.filter((chunk) => !progress.has(chunk));
  const note = (result: ChunkResult) => {
    progress.add(result);
    printFailing(result);
    if (progress.chunks.length % 10 === 0) console.log(`${progress.seeds} seeds, ${progress.seconds.toFixed(0)} s`);
    if (result.failing.length > 0 && !keepsGoing) chunks.length = 0;
  };
  const taskOf = (chunk: number): Task => {
    const first = chunk * chunkSize;
    return { chunk, from: from + first, seeds: Math.min(chunkSize, seeds - first), rates };
  };
  const work = async (run: (task: Task) => Promise<ChunkResult>) => {
    for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) note(await run(taskOf(chunk)));
  };
  if (jobs <= 1) await work(runChunk);
  else await Promise.all(Array.from({ length: jobs }, () => inProcess(work)));
  const exitCode = await judge(progress, rates);
  // One that a violation has stopped can go on with --keep-going.
  if (all.every((chunk) => progress.has(chunk))) progress.forget();
  return exitCode;
}

function printFailing({ failing }: ChunkResult): void {
  for (const { seed, violations } of failing) {
    console.log(`Seed ${seed} fails:`);
    for (const { invariant, run, text } of violations.slice(0, 5))
      console.log(`  ${invariant} ${run ?? ""} ${text.slice(0, 300)}`);
  }
}

/** A process of its own that runs one chunk after the other. */
async function inProcess(work: (run: (task: Task) => Promise<ChunkResult>) => Promise<void>): Promise<void> {
  const child = fork(fileURLToPath(import.meta.url), ["--worker"], { stdio: "inherit" });
  await work(
    (task) =>
      new Promise((resolve, reject) => {
        child.once("message", (result) => {
          child.removeAllListeners("exit");
          resolve(result as ChunkResult);
        });
        child.once("exit", (code) => reject(new Error(`A process of the simulation ended with code ${code}.`)));
        child.send(task);
      }),
  );
  child.removeAllListeners("exit");
  child.disconnect();
}

async function judge(progress: Progress, rates: FaultRates): Promise<number> {
  const { chunks } = progress;
  const coverage: Counts = {};
  for (const chunk of chunks) addCounts(coverage, chunk.coverage);
  const failing = chunks.flatMap((chunk) => chunk.failing).sort((a, b) => a.seed - b.seed);
  const events = chunks.reduce((sum, chunk) => sum + chunk.events, 0);
  for (const name of Object.keys(coverage).sort()) console.log(`${String(coverage[name]).padStart(9)}  ${name}`);
  console.log(
    `${progress.seeds} seeds, ${events} events, ${progress.seconds.toFixed(0)} s: ${failing.length} with violations.`,
  );
  const missing = requiredCoverage(progress.seeds).filter((name) => (coverage[name] ?? 0) === 0);
  if (missing.length > 0) console.log(`Never exercised: ${missing.join("; ")}.`);
  const [first] = failing;
  if (first !== undefined) {
    const smallest = await shrink(await runSeed({ seed: first.seed, rates }));
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
    rates: { type: "string" },
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
  // The process of the campaign was killed.
  process.once("disconnect", () => process.exit(1));
  process.on("message", (task: Task) => {
    void runChunk(task).then((result) => process.send?.(result));
  });
} else if (values.help) console.log(usage);
else {
  const code =
    values.seed === undefined
      ? await campaign({
          from: Number(values.from),
          seeds: Number(values.seeds),
          rates: values.rates === undefined ? {} : ratesOf(values.rates),
          jobs: Number(values.jobs),
          file: values.progress ?? join(".simulation", `campaign-${values.from}-${values.seeds}.jsonl`),
          keepsGoing: values["keep-going"],
        })
      : await runOne(seedOptionsOf({ ...values, seed: values.seed }), values.trace);
  // A pipe may not have taken all of a long trace yet.
  process.stdout.write("", () => process.exit(code));
}
