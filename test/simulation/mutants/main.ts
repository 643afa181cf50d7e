/**
 * `npm run simulate -- --mutants`: see `usage`. Each mutant is simulated until it is found. The bugs that the simulation has found once must
 * be found by their kept seeds.
 */
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runSeed } from "../run-seed.js";
import { buildMutants } from "./build.js";
import { type FoundBug, foundBugs } from "./found-bugs.js";
import type { Find, HuntOptions } from "./hunt.js";
import type { Mutant } from "./mutant.js";
import { mutants } from "./mutants.js";

const usage = `npm run simulate -- --mutants [options]
  --only a,b     only these mutants and bugs
  --found        only the bugs that the simulation has found, whose kept seeds must find them. For a seed that does not any more, the
                 first one that does is printed; it belongs into test/simulation/mutants/found-bugs.ts
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
    found: { type: "boolean", default: false },
    seeds: { type: "string", default: "10000" },
    from: { type: "string", default: "1" },
    jobs: { type: "string", default: "1" },
    shrink: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const root = process.cwd();

interface Outcome {
  /** The seed that has found it; null if it survived, or hangs. */
  readonly seed: number | null;
  readonly invariants: string;
  readonly text: string;
  readonly isFound: boolean;
}

const survived: Outcome = { seed: null, invariants: "", text: "It survived.", isFound: false };

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

const isFoundBug = (mutant: Mutant): mutant is FoundBug => "seed" in mutant;

/** Simulates these seeds with the bug until one of them violates an invariant. */
async function find(mutant: Mutant, folder: string, from: number, to: number): Promise<Outcome> {
  const { name } = mutant;
  const rates = isFoundBug(mutant) ? mutant.rates : {};
  for (let next = from; next <= to; ) {
    const found = await huntIn(folder, { from: next, to, rates, shrinks: values.shrink });
    if (found === null) break;
    if (found === "hangs") return { seed: null, invariants: "I2", text: "The process stands still.", isFound: true };
    const { seed, invariants, text, command } = found;
    // What the code without the bug violates as well does not count.
    const { violations } = await runSeed({ seed, rates });
    if (violations.some(({ invariant }) => invariants.includes(invariant))) {
      console.log(`Seed ${seed} violates ${invariants.join()} without the mutant "${name}", too.`);
      next = seed + 1;
      continue;
    }
    if (command !== null) {
      const isSame = isReproduced(folder, found);
      console.log(`${name}: ${command}: ${isSame ? "fails in the same way" : "does NOT fail"}`);
      if (!isSame) return { seed, invariants: invariants.join(), text: `${command} does not fail.`, isFound: false };
    }
    return { seed, invariants: invariants.join(", "), text, isFound: true };
  }
  return survived;
}

/** The kept seed must find the bug. If it does not any more, others are searched for one that does. */
async function findAgain(bug: FoundBug, folder: string, from: number, to: number): Promise<Outcome> {
  const outcome = await find(bug, folder, bug.seed, bug.seed);
  if (outcome.isFound) return outcome;
  console.log(`Seed ${bug.seed} does not find "${bug.name}" any more. Searching for another one.`);
  const other = await find(bug, folder, from, to);
  const advice =
    other.seed === null
      ? `No seed from ${from} to ${to} finds it; try --from and --seeds.`
      : `Seed ${other.seed} does: put it into test/simulation/mutants/found-bugs.ts.`;
  return { ...other, text: `Seed ${bug.seed} does not find it any more. ${advice}`, isFound: false };
}

interface Row {
  readonly mutant: Mutant;
  readonly outcome: Outcome;
  /** How many seeds it took, or the kept seed. */
  readonly figure: string;
}

function print(rows: readonly Row[], title: string, figure: string): void {
  if (rows.length === 0) return;
  console.log(`\n| ${title} | what it breaks | ${figure} | found by |\n| --- | --- | ---: | --- |`);
  for (const { mutant, outcome, figure: value } of rows)
    console.log(
      `| ${mutant.name} | ${mutant.breaks} | ${value} | ${outcome.isFound ? outcome.invariants : "NOT FOUND"} |`,
    );
}

async function main(): Promise<number> {
  const names = values.only?.split(",");
  const all: readonly Mutant[] = [...mutants, ...foundBugs];
  const unknown = names?.filter((name) => !all.some((mutant) => mutant.name === name)) ?? [];
  if (unknown.length > 0) {
    console.error(`There is no mutant ${unknown.join()}. There are: ${all.map(({ name }) => name).join(", ")}.`);
    return 2;
  }
  const isChosen = ({ name }: Mutant) => names?.includes(name) ?? true;
  const chosen = [...(values.found ? [] : mutants), ...foundBugs].filter(isChosen);
  const folders = await buildMutants(root, join(root, ".simulation/mutants"), chosen);
  const from = Number(values.from);
  const to = from + Number(values.seeds) - 1;
  const outcomes = new Map<Mutant, Outcome>();
  const left = [...chosen];
  const work = async () => {
    for (let mutant = left.shift(); mutant !== undefined; mutant = left.shift()) {
      const folder = folders.get(mutant.name) as string;
      const outcome = await (isFoundBug(mutant) ? findAgain(mutant, folder, from, to) : find(mutant, folder, from, to));
      outcomes.set(mutant, outcome);
      console.log(
        `${outcome.isFound ? "✓" : "✗"} ${mutant.name}: seed ${outcome.seed ?? "–"}. ${outcome.text.slice(0, 200)}`,
      );
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
  const rows = chosen.map((mutant): Row => {
    const outcome = outcomes.get(mutant) as Outcome;
    const seeds = outcome.seed === null ? "–" : String(outcome.seed - from + 1);
    return { mutant, outcome, figure: isFoundBug(mutant) ? String(mutant.seed) : seeds };
  });
  const isKept = ({ mutant }: Row) => isFoundBug(mutant);
  print(
    rows.filter((row) => !isKept(row)),
    "mutant",
    "seeds",
  );
  print(rows.filter(isKept), "bug", "seed");
  const survivors = rows.filter(({ outcome }) => !outcome.isFound);
  console.log(`\n${rows.length - survivors.length} of ${rows.length} mutants were found.`);
  return survivors.length === 0 ? 0 : 1;
}

if (values.help) console.log(usage);
else {
  const code = await main();
  process.stdout.write("", () => process.exit(code));
}
