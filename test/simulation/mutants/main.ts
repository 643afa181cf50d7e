/** `npm run simulate -- --mutants`: see `usage`. Each mutant is applied to a copy of the source, compiled, and simulated until it is found. */
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runSeed } from "../run-seed.js";
import { applyMutant } from "./apply.js";
import type { Find, HuntOptions } from "./hunt.js";
import { type Mutant, mutants } from "./mutants.js";

const usage = `npm run simulate -- --mutants [options]
  --only a,b     only these mutants
  --seeds N      how many seeds a mutant may take until it is found (default 10,000)
  --from N       the first seed (default 1)
  --jobs N       how many mutants at a time (default 1)
  --shrink       runs the command that the smallest failing world prints, and checks that it violates the same invariant`;

/** A process that finishes no world for so long has found that its mutant hangs. */
const longestSilenceMs = 300_000;

const { values } = parseArgs({
  options: {
    mutants: { type: "boolean" },
    only: { type: "string" },
    seeds: { type: "string", default: "10000" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    shrink: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const root = process.cwd();

interface Outcome {
  readonly mutant: Mutant;
  /** How many seeds were needed; null if it survived. */
  readonly seeds: number | null;
  readonly invariants: string;
  readonly text: string;
  readonly isFound: boolean;
}

/** Compiles a copy of the source with the bug. Returns the folder with the compiled files. */
function build(mutant: Mutant): string {
  const folder = join(root, ".simulation/mutants", mutant.name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, "test/support"), { recursive: true });
  const isSource = (path: string) => !path.endsWith(".test.ts");
  for (const part of ["src", "test/simulation", "test/support/seeded-random.ts"])
    cpSync(join(root, part), join(folder, part), { recursive: true, filter: isSource });
  for (const [file, text] of applyMutant(root, mutant)) writeFileSync(join(folder, file), text);
  const config = {
    extends: join(root, "tsconfig.simulation.json"),
    compilerOptions: { rootDir: ".", outDir: "out" },
    include: ["src", "test"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = join(root, "node_modules/.bin/tsc");
  const { status, stdout } = spawnSync(tsc, ["-p", folder, "--noCheck"], { encoding: "utf8" });
  if (status !== 0) throw new Error(`The mutant "${mutant.name}" cannot be compiled:\n${stdout}`);
  return join(folder, "out");
}

function huntIn(folder: string, options: HuntOptions): Promise<Find | "hangs" | null> {
  const child: ChildProcess = fork(join(folder, "test/simulation/mutants/hunt.js"), { stdio: "inherit" });
  return new Promise((resolve, reject) => {
    const onSilence = () => {
      child.removeAllListeners("exit");
      child.kill("SIGKILL");
      resolve("hangs");
    };
    let timer = setTimeout(onSilence, longestSilenceMs);
    child.on("message", (message: { kind: "progress" } | { kind: "end"; find: Find | null }) => {
      clearTimeout(timer);
      if (message.kind === "progress") timer = setTimeout(onSilence, longestSilenceMs);
      else {
        child.removeAllListeners("exit");
        resolve(message.find);
      }
    });
    // With nothing left to wait for, the process ends in the middle of a world.
    child.once("exit", (code) => {
      clearTimeout(timer);
      if (code === 0) resolve("hangs");
      else reject(new Error(`The process of a mutant ended with code ${code}.`));
    });
    child.send(options);
  });
}

/** Whether the command, executed by the code with the bug, violates one of these invariants. */
function isReproduced(folder: string, { command, invariants }: Find): boolean {
  const options = (command ?? "").split(" ").slice(4);
  const { stdout } = spawnSync(process.execPath, [join(folder, "test/simulation/main.js"), ...options], {
    encoding: "utf8",
    maxBuffer: 1 << 30,
  });
  return stdout.split("\n").some((line) => invariants.some((invariant) => line.startsWith(`${invariant} `)));
}

async function find(mutant: Mutant, from: number, most: number): Promise<Outcome> {
  const folder = build(mutant);
  const to = from + most - 1;
  const outcome = (seeds: number | null, invariants: string, text: string, isFound = true): Outcome => {
    return { mutant, seeds, invariants, text, isFound };
  };
  for (let next = from; next <= to; ) {
    const found = await huntIn(folder, { from: next, to, shrinks: values.shrink });
    if (found === null) break;
    if (found === "hangs") return outcome(null, "I2", "The process stands still.");
    const { seed, invariants, text, command } = found;
    // What the code without the bug violates as well does not count.
    const { violations } = await runSeed({ seed });
    if (violations.some(({ invariant }) => invariants.includes(invariant))) {
      console.log(`Seed ${seed} violates ${invariants.join()} without the mutant "${mutant.name}", too.`);
      next = seed + 1;
      continue;
    }
    if (command !== null) {
      const isSame = isReproduced(folder, found);
      console.log(`${mutant.name}: ${command}: ${isSame ? "fails in the same way" : "does NOT fail"}`);
      if (!isSame) return outcome(seed - from + 1, invariants.join(), `${command} does not fail.`, false);
    }
    return outcome(seed - from + 1, invariants.join(", "), text);
  }
  return outcome(null, "", "It survived.", false);
}

function print(outcomes: readonly Outcome[]): void {
  console.log("\n| mutant | what it breaks | seeds | found by |\n| --- | --- | ---: | --- |");
  for (const { mutant, seeds, invariants, isFound } of outcomes)
    console.log(`| ${mutant.name} | ${mutant.breaks} | ${seeds ?? "–"} | ${isFound ? invariants : "NOT FOUND"} |`);
}

async function main(): Promise<number> {
  const names = values.only?.split(",");
  const unknown = names?.filter((name) => !mutants.some((mutant) => mutant.name === name)) ?? [];
  if (unknown.length > 0) {
    console.error(`There is no mutant ${unknown.join()}. There are: ${mutants.map(({ name }) => name).join(", ")}.`);
    return 2;
  }
  const chosen = mutants.filter(({ name }) => names?.includes(name) ?? true);
  const outcomes: Outcome[] = [];
  const left = [...chosen];
  const work = async () => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const outcome = await find(mutant, Number(values.from), Number(values.seeds));
      outcomes.push(outcome);
      console.log(
        `${outcome.isFound ? "✓" : "✗"} ${mutant.name}: ${outcome.seeds ?? "–"} seeds. ${outcome.text.slice(0, 200)}`,
      );
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  outcomes.sort((a, b) => chosen.indexOf(a.mutant) - chosen.indexOf(b.mutant));
  print(outcomes);
  const survivors = outcomes.filter(({ isFound }) => !isFound);
  console.log(`\n${outcomes.length - survivors.length} of ${outcomes.length} mutants were found.`);
  return survivors.length === 0 ? 0 : 1;
}

if (values.help) console.log(usage);
else {
  const code = await main();
  process.stdout.write("", () => process.exit(code));
}
