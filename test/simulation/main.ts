import { findViolations } from "./checker.js";
import { collectEvidence } from "./evidence.js";
import { Trace } from "./kernel/trace.js";
import { World } from "./world.js";

const [from, to, keep] = [Number(process.argv[2]), Number(process.argv[3]), process.argv[4] === "--trace"];
const began = performance.now();
let events = 0;
for (let seed = from; seed <= to; seed += 1) {
  const trace = new Trace({ keepsLines: keep });
  const world = new World({ seed, trace });
  await world.run();
  events += world.scheduler.eventCount;
  if (keep) console.log(trace.lines.join("\n"));
  for (const { invariant, run, text } of findViolations(await collectEvidence(world))) console.log(`seed ${seed} ${invariant} ${run?.slice(-6)} ${text}`);
}
const s = (performance.now() - began) / 1000;
console.log(`${to - from + 1} seeds ${s.toFixed(1)} s, ${events} events`);
process.exit();
