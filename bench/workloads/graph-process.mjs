// One of the processes that share the nodes of W7's graphs.
//
//   node graph-process.mjs <url>

import { subscribe } from "node:diagnostics_channel";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { connect, job } from "pawl";
import { listen, nowMs, tell } from "../growth/child.mjs";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

let executed = 0;
const node = job("w7_node", (_args, { node: { id } }) => {
  executed += 1;
  return id;
});
/** Depends on all other nodes. */
const join = job("w7_join", () => tell("joined", { at: nowMs() }));

const pawl = await connect(process.argv[2]);
const worker = pawl.worker({ workflows: [], jobs: [node, join] });

let mostRss = 0;
const lookAtRss = () => (mostRss = Math.max(mostRss, process.memoryUsage.rss()));
setInterval(lookAtRss, 20);

let mostHeap = 0;
function lookAtHeap() {
  collectGarbage();
  mostHeap = Math.max(mostHeap, process.memoryUsage().heapUsed);
}

/** The coordinating process is about to release its run: everything that it knows of the graph is still in memory. */
const letGo = ({ workflow, status }) => workflow === "w7" && (status === "waiting" || status === "completed");
let watched = false;
subscribe("pawl:run", (told) => {
  if (watched && letGo(told)) lookAtHeap();
});

listen({
  /**
   * Samples from now on until it is asked: only for graphs that are large enough that sampling takes little of their
   * time.
   */
  watch: () => (watched = true),
  heap: () => {
    lookAtHeap();
    tell("heap", { mostHeap });
    mostHeap = 0;
  },
  /** Since the last request; a report without a heap means that this process has coordinated nothing. */
  work: () => {
    lookAtRss();
    tell("work", { executed, mostRss, mostHeap });
    executed = mostRss = mostHeap = 0;
    watched = false;
  },
  stop: () => pawl.close(),
});

await worker.start();
tell("works");
