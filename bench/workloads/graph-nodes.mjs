// W7: a wide graph that is built at run time: all nodes are concurrent, and one more depends on all of them. Four
// worker processes share it. Does a node cost the same in a graph of ten times the size, does each process get its
// share, and how much memory does the coordinating process use?

import { setTimeout as sleep } from "node:timers/promises";
import { nowMs, startProcess } from "../growth/child.mjs";
import { median } from "../statistics.mjs";

const processes = 4;
/** Many small graphs: frequent calls make the engine compile the code, and small graphs do not enlarge the heap. */
const warmUp = { graphs: 10, nodes: 100 };
/** A small graph ends very quickly, so the median of several is used. */
const smallGraphs = 3;
const megabyte = 1024 ** 2;

const names = {
  seconds: "W7 graph of 10,000 nodes, 4 processes, s",
  small: "W7 ms / node, of 1,000",
  large: "W7 ms / node, of 10,000",
  growth: "W7 … 10,000 ÷ 1,000",
  shares: Array.from({ length: processes }, (_, rank) => `W7 % of the nodes, process ${rank + 1}`),
  heap: "W7 coordinator's heap grows by (after gc), MB",
  rss: "W7 coordinator's RSS grows by, MB",
};

export const graphNodes = {
  id: "W7",
  sizes: { full: 10_000, quick: 10_000 },
  figures: Object.fromEntries(
    Object.values(names)
      .flat()
      .map((name) => [name, {}]),
  ),

  async measure({ pawl, database }, size) {
    // The memory store has no other processes; and those of each measurement are new and warm up by themselves.
    if (database.url === "memory:" || size < graphNodes.sizes.quick) return { figures: {} };
    const script = new URL("graph-process.mjs", import.meta.url);
    const children = Array.from({ length: processes }, () => startProcess(script, [database.url]));
    try {
      const figures = await measureGraphs({ pawl, children }, size);
      for (const child of children) await child.stop();
      return { figures };
    } finally {
      for (const child of children) await child.kill();
    }
  },
};

async function measureGraphs({ pawl, children }, size) {
  for (const child of children) await child.next("works");
  const graph = (nodes) => timeGraph(pawl, children, nodes);
  for (let n = 0; n < warmUp.graphs; n += 1) await graph(warmUp.nodes);
  const heaps = await askAll(children, "heap");
  const before = await askAll(children, "work");

  const times = [];
  for (let n = 0; n < smallGraphs; n += 1) times.push((await graph(size / 10)) / (size / 10));
  await askAll(children, "work");
  for (const child of children) child.say("watch");
  const ms = await graph(size);
  // The coordinating process may learn a moment later than this one that the graph is complete.
  await sleep(100);
  const after = await askAll(children, "work");

  const shares = after.map(({ executed }) => (100 * executed) / size).sort((a, b) => b - a);
  const [small, large] = [median(times), ms / size];
  return {
    [names.seconds]: ms / 1000,
    [names.small]: small,
    [names.large]: large,
    [names.growth]: large / small,
    ...Object.fromEntries(names.shares.map((name, rank) => [name, shares[rank]])),
    [names.heap]: growthOf("mostHeap", heaps, after) / megabyte,
    [names.rss]: growthOf("mostRss", before, after) / megabyte,
  };
}

/** Several processes may have coordinated, one after the other: the one whose memory grew most counts. */
function growthOf(what, before, after) {
  const grown = after.map((one, index) => (one.mostHeap === 0 ? 0 : one[what] - before[index][what]));
  return Math.max(...grown);
}

/** Milliseconds from the call of build() until the node that depends on all others is executed. */
async function timeGraph(pawl, children, size) {
  const beganAt = nowMs();
  const run = await pawl.build("w7", (g) => {
    g.fanOut(Array(size).keys(), { name: (n) => `node_${n}`, job: "w7_node" });
    g.node("join", { job: "w7_join" });
  });
  const at = await joinedAt(children);
  await run.result();
  return at - beganAt;
}

/** Any of the processes may execute it. */
async function joinedAt(children) {
  for (;;) {
    for (const child of children) {
      const message = child.latest("joined");
      if (message !== undefined) return message.at;
    }
    await sleep(1);
  }
}

async function askAll(children, what) {
  const answers = [];
  for (const child of children) {
    child.say(what);
    answers.push(await child.next(what));
  }
  return answers;
}
