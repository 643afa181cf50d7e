// The workflows that every contender runs, written once: `ctx` is the contender's own, under three names.
//
//   ctx.step(name, body)          a recorded step
//   ctx.all(promises)             what the contender has in place of Promise.all
//   ctx.children(name, inputs)    one child run for each input; their results

/**
 * What really happened: step bodies that started, handlers that returned by name, milliseconds from a call to its step.
 */
export const seen = { entered: 0, returned: new Map(), latencies: [] };

export function forget() {
  seen.entered = 0;
  seen.returned.clear();
  seen.latencies = [];
}

export const nowMs = () => Number(process.hrtime.bigint()) / 1e6;

const body = (total) => () => {
  seen.entered += 1;
  return { ok: true, total };
};

const numbers = (count) => Array.from({ length: count }, (_, n) => n);

/** The keys of which a run is being executed: the limit is one run per key. */
const busyKeys = new Set();

export const handlers = Object.fromEntries(
  Object.entries({
    one_step: (ctx, n) => ctx.step("charge", body(n)),

    ten_steps: async (ctx, n) => {
      for (let step = 1; step <= 10; step += 1) await ctx.step(`step_${step}`, body(n));
    },

    chain: async (ctx, steps) => {
      for (let step = 1; step <= steps; step += 1) await ctx.step(`step_${step}`, body(step));
    },

    enter: (ctx, calledAt) =>
      ctx.step("enter", () => {
        seen.latencies.push(nowMs() - calledAt);
        return body(0)();
      }),

    fan_out: async (ctx, steps) => {
      await ctx.all(numbers(steps).map((n) => ctx.step(`part_${n}`, body(n))));
    },

    keyed: async (ctx, { n, key }) => {
      if (busyKeys.has(key)) throw new Error(`Two runs of key ${key} are executed at a time.`);
      busyKeys.add(key);
      await ctx.step("charge", body(n));
      busyKeys.delete(key);
    },

    child: (ctx, n) => ctx.step("part", body(n)),

    parent: async (ctx, count) => {
      const results = await ctx.children("child", numbers(count));
      const sum = results.reduce((total, result) => total + result.total, 0);
      if (results.length !== count || sum !== (count * (count - 1)) / 2)
        throw new Error("Results of children are lost.");
    },
  }).map(([name, handler]) => [name, counted(name, handler)]),
);

/** A handler that is replayed reaches its end only once. */
function counted(name, handler) {
  return async (ctx, input) => {
    const result = await handler(ctx, input);
    seen.returned.set(name, (seen.returned.get(name) ?? 0) + 1);
    return result ?? null;
  };
}
