/** The operations that have a budget, and how each is made to happen alone: one run, one operation, nothing else. */
import { type RunHandle, Workflow, type WorkflowContext, workflow } from "pawl";
import { Checkpoints } from "./checkpoints.js";
import type { Cost } from "./gate.js";
import type { Meter } from "./meter.js";

export type Operation = (meter: Meter) => Promise<Cost>;

/** A run that its worker executes: its first step is completed, and it has stopped right before the operation. */
async function startedRun(
  meter: Meter,
  code: (ctx: WorkflowContext<void>) => Promise<unknown>,
  others: Parameters<Meter["serve"]>[0] = [],
): Promise<{ readonly stops: Checkpoints; readonly run: RunHandle<void, unknown> }> {
  const stops = new Checkpoints();
  const definition = workflow(meter.newName(), async (ctx) => {
    await ctx.step("first", () => "done");
    await stops.stop("before");
    await code(ctx);
    await stops.stop("after");
    return "done";
  });
  const { pawl } = await meter.serve([definition, ...others]);
  const run = await pawl.start(definition);
  await stops.reached("before");
  return { stops, run };
}

/** The cost from right before the operation until right after it. */
async function costBetweenStops(meter: Meter, stops: Checkpoints): Promise<Cost> {
  return meter.cost(() => {
    stops.open("before");
    return stops.reached("after");
  });
}

/** A start in a process without a worker, of a workflow that has a worker in another process. */
const start: Operation = async (meter) => {
  const idle = workflow(meter.newName(), async () => {});
  const { client } = await meter.serve([idle]);
  meter.observed.holdHints();
  // The first start also reads whether a live worker has the workflow, which happens every ten seconds.
  await client.start(idle);
  return meter.cost(() => client.start(idle));
};

/** A start in the process of its worker, up to the first line of its code. */
const startWithLocalWorker: Operation = async (meter) => {
  const stops = new Checkpoints();
  const definition = workflow(meter.newName(), () => stops.stop("begin"));
  const { pawl } = await meter.serve([definition]);
  return meter.cost(async () => {
    await pawl.start(definition);
    await stops.reached("begin");
  });
};

/** From the hint that a run is ready up to the first line of its code. */
const claim: Operation = async (meter) => {
  const stops = new Checkpoints();
  const definition = workflow(meter.newName(), () => stops.stop("begin"));
  const { client } = await meter.serve([definition]);
  meter.observed.holdHints();
  await client.start(definition);
  return meter.cost(() => {
    meter.observed.releaseHints();
    return stops.reached("begin");
  });
};

/** A hint that something is ready, although nothing is. */
const emptyClaim: Operation = async (meter) => {
  await meter.serve([workflow(meter.newName(), async () => {})]);
  return meter.cost(() => meter.observed.nudge());
};

const step: Operation = async (meter) => {
  const { stops } = await startedRun(meter, (ctx) => ctx.step("second", () => "done"));
  return costBetweenStops(meter, stops);
};

const hundredStepsAtOnce: Operation = async (meter) => {
  const names = Array.from({ length: 100 }, (_, n) => `part_${n + 100}`);
  const { stops } = await startedRun(meter, (ctx) => Promise.all(names.map((name) => ctx.step(name, () => "done"))));
  return costBetweenStops(meter, stops);
};

const transactionalStep: Operation = async (meter) => {
  // The first transaction opens the connection for such steps.
  const warm = new Checkpoints();
  const { stops } = await startedRun(meter, async (ctx) => {
    await ctx.transaction("second", () => "done");
    await warm.stop("here");
    await ctx.transaction("third", () => "done");
  });
  stops.open("before");
  await warm.reached("here");
  return meter.cost(() => {
    warm.open("here");
    return stops.reached("after");
  });
};

/** An awaited checkpoint in the middle of a resumable step: the cursor moves on by one item. */
const checkpoint: Operation = async (meter) => {
  const stops = new Checkpoints();
  class Sweep extends Workflow {
    static {
      this.options({ name: meter.newName() });
      this.resumableStep("sweep", async (_, iter) => {
        // The first checkpoint inserts the row.
        await iter.set(101);
        await stops.stop("before");
        await iter.set(102);
        await stops.stop("after");
      });
    }
  }
  const { pawl } = await meter.serve([Sweep]);
  await pawl.start(Sweep);
  await stops.reached("before");
  return costBetweenStops(meter, stops);
};

/** The code returns and the run ends. */
const finish: Operation = async (meter) => {
  const { stops } = await startedRun(meter, async () => {});
  stops.open("before");
  await stops.reached("after");
  return meter.cost(() => stops.open("after"));
};

const askForResult: Operation = async (meter) => {
  const { stops, run } = await startedRun(meter, async () => {});
  stops.open("before");
  stops.open("after");
  await meter.untilReleased();
  return meter.cost(() => run.result());
};

const sleep: Operation = async (meter) => {
  const { stops } = await startedRun(meter, (ctx) => ctx.sleep("nap", "1 day"));
  return meter.cost(async () => {
    stops.open("before");
    await meter.untilReleased();
  });
};

/** The timer fires: from the claim until the code continues after the sleep. */
const wakeUp: Operation = async (meter) => {
  const { stops } = await startedRun(meter, (ctx) => ctx.sleep("nap", "1 day"));
  stops.open("before");
  await meter.untilReleased();
  meter.clock.moveTo(meter.clock.read() + 24 * 60 * 60 * 1_000);
  return meter.cost(() => {
    meter.observed.nudge();
    return stops.reached("after");
  });
};

const waitForSignal: Operation = async (meter) => {
  const { stops } = await startedRun(meter, (ctx) => ctx.waitForSignal("word"));
  return meter.cost(async () => {
    stops.open("before");
    await meter.untilReleased();
  });
};

/** A signal to a run that waits for it, until its code has received it. */
const signal: Operation = async (meter) => {
  const { stops, run } = await startedRun(meter, (ctx) => ctx.waitForSignal("word"));
  stops.open("before");
  await meter.untilReleased();
  return meter.cost(async () => {
    await run.signal("word", "done");
    await stops.reached("after");
  });
};

/** A signal to a run that a worker owns: it goes through the inbox into the log. */
const signalToBusyRun: Operation = async (meter) => {
  const { run } = await startedRun(meter, async () => {});
  return meter.cost(() => run.signal("word", "done"));
};

/** Everything that a child adds: its creation, its claim, its end, and waking its parent with the result. */
const child: Operation = async (meter) => {
  const part = workflow(meter.newName(), async () => "done");
  const { stops } = await startedRun(meter, (ctx) => ctx.run(part), [part]);
  return costBetweenStops(meter, stops);
};

/** One more child in the middle of a map: the previous one has ended, and the next may start. */
const childOfMap: Operation = async (meter) => {
  const parts = new Checkpoints();
  const part = workflow(meter.newName(), async (_ctx, n: number) => {
    await parts.stop(`part ${n}`);
    return "done";
  });
  const { stops } = await startedRun(meter, (ctx) => ctx.map(part, [1, 2, 3, 4], { concurrency: 1 }), [part]);
  stops.open("before");
  for (const n of [1, 2]) {
    await parts.reached(`part ${n}`);
    await meter.untilIdle();
    if (n === 1) parts.open("part 1");
  }
  return meter.cost(async () => {
    parts.open("part 2");
    await parts.reached("part 3");
  });
};

/** A map of a hundred: the cost of creating all children. */
const createHundredChildren: Operation = async (meter) => {
  const part = workflow(meter.newName(), async (_ctx, n: number) => n);
  const items = Array.from({ length: 100 }, (_, n) => n + 100);
  const { stops } = await startedRun(meter, (ctx) => ctx.map(part, items), [part]);
  meter.observed.holdHints();
  return meter.cost(async () => {
    stops.open("before");
    await meter.untilReleased();
  });
};

export const operations = {
  start,
  "start with a local worker": startWithLocalWorker,
  claim,
  "empty claim": emptyClaim,
  step,
  "100 steps at once": hundredStepsAtOnce,
  "transactional step": transactionalStep,
  checkpoint,
  finish,
  "ask for a result": askForResult,
  "fall asleep": sleep,
  "wake up": wakeUp,
  "wait for a signal": waitForSignal,
  signal,
  "signal to a busy run": signalToBusyRun,
  child,
  "child of a map": childOfMap,
  "100 new children of a map": createHundredChildren,
} satisfies Record<string, Operation>;
