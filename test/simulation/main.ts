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
  if (world.stuck !== null) console.log(`seed ${seed} stuck: ${world.stuck}`);
}
const s = (performance.now() - began) / 1000;
console.log(`${to - from + 1} seeds ${s.toFixed(1)} s, ${events} events`);
process.exit();
