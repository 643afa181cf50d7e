import { describe, expect, test } from "vitest";
import { type NewEvent, newEvent } from "../../core/run/event.js";
import { evolve, fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import { systemRuntime } from "../../runtime/system.js";
import { ResultDelivery, type ResultOwner } from "./result-delivery.js";

const completed = (node: string) =>
  newEvent("step.completed", { node, attempt: 1 }, {}, { output: JSON.stringify(node) });
const macrotask = () => new Promise((resolve) => setImmediate(resolve));

function openDelivery(...recorded: NewEvent[]) {
  const state: RunState = fold(recorded.map((event, index) => ({ ...event, seq: index + 1, at: (index + 1) * 10 })));
  let idle = 0;
  const owner: ResultOwner = {
    state,
    host: { runtime: systemRuntime },
    resolveCall: (key, call) => call.resolve(key),
    onDeliveryIdle: () => {
      idle += 1;
    },
  };
  const results = new ResultDelivery(owner, 1);
  const write = (...events: NewEvent[]) => {
    for (const event of events) evolve(state, { ...event, seq: state.seq + 1, at: (state.seq + 1) * 10 });
    results.deliver();
  };
  return { results, write, idle: () => idle };
}

describe("result delivery", () => {
  test("follows the order of the log, each result after all code that the one before triggered has run", async () => {
    const { results } = openDelivery(completed("b"), completed("a"), completed("c"));
    const order: string[] = [];
    const chain = (key: string) =>
      results
        .request(key)
        .then(() => order.push(key))
        .then(() => {})
        .then(() => {})
        .then(() => order.push(`after ${key}`));
    const all = Promise.all([chain("a"), chain("b"), chain("c")]);
    results.startDelivery();
    await all;
    expect(order).toEqual(["b", "after b", "a", "after a", "c", "after c"]);
  });

  test("outside of the order of the log gives each call its result once", async () => {
    const { results, write } = openDelivery(completed("a"), completed("b"));
    const order: unknown[] = [];
    const ask = (key: string) => void results.requestOutOfOrder(key).then((result) => order.push(result));
    results.startDelivery();
    await macrotask();
    // Delivery has passed these, and then the log gets one that is asked for later.
    ask("b");
    ask("c");
    ask("d");
    write(completed("d"));
    await macrotask();
    write(completed("c"));
    while (order.length < 3) await macrotask();
    expect(order.sort()).toEqual(["b", "c", "d"]);
  });

  test("does not start before the code was called", async () => {
    const { results, write } = openDelivery(completed("a"));
    write(completed("b"));
    await macrotask();
    expect(results.now).toBe(1);
    const order: unknown[] = [];
    void results.request("b").then((key) => order.push(key));
    void results.request("a").then((key) => order.push(key));
    results.startDelivery();
    while (order.length < 2) await macrotask();
    expect(order).toEqual(["a", "b"]);
  });

  test("sets now to the time of each delivered result", async () => {
    const { results } = openDelivery(completed("a"), completed("b"));
    const times: number[] = [];
    const note = () => times.push(results.now);
    const all = Promise.all([results.request("a").then(note), results.request("b").then(note)]);
    note();
    results.startDelivery();
    await all;
    expect(times).toEqual([1, 10, 20]);
  });

  test("is immediate for a call that the code makes after its result was passed", async () => {
    const { results } = openDelivery(completed("a"), completed("b"));
    const b = results.request("b");
    results.startDelivery();
    expect(await b).toBe("b");
    expect(await results.request("a")).toBe("a");
  });

  test("happens live as results are written", async () => {
    const { results, write, idle } = openDelivery();
    results.startDelivery();
    const a = results.request("a");
    write(completed("a"));
    expect(await a).toBe("a");
    expect(idle()).toBe(1);
    expect(results.isDelivering).toBe(false);
  });

  test("is immediate for an added call, and waits for it before results of calls that the code makes after it", async () => {
    const { results } = openDelivery(completed("a"), completed("b"), completed("added"));
    const delivered: string[] = [];
    results.startDelivery();
    const other = results.request("a").then(() => delivered.push("a"));
    const added = results.requestOutOfOrder("added").then(async () => {
      delivered.push("added");
      await results.request("b");
      delivered.push("b");
    });
    await Promise.all([other, added]);
    expect(delivered).toEqual(["added", "a", "b"]);
  });

  test("does not prevent parking while results are stuck behind a call without a result", async () => {
    const { results, write } = openDelivery(completed("a"));
    results.startDelivery();
    const added = results.requestOutOfOrder("added");
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(results.isDelivering).toBe(false);
    write(completed("added"));
    expect(await added).toBe("added");
    expect(await results.request("a")).toBe("a");
  });

  test("leaves out a forgotten call and continues with the others", async () => {
    const { results, write } = openDelivery();
    results.startDelivery();
    let isDelivered = false;
    void results.request("a").then(() => {
      isDelivered = true;
    });
    results.forget("a");
    const b = results.request("b");
    write(completed("a"), completed("b"));
    expect(await b).toBe("b");
    expect(isDelivered).toBe(false);
  });

  test("stops when it is closed, and pending calls never settle", async () => {
    const { results, write } = openDelivery();
    results.startDelivery();
    let isDelivered = false;
    void results.request("a").then(() => {
      isDelivered = true;
    });
    results.close();
    write(completed("a"));
    await macrotask();
    await macrotask();
    expect(isDelivered).toBe(false);
  });

  test("waits for a result that has to be read before it delivers the next one", async () => {
    const state = fold(
      [completed("slow"), completed("quick")].map((event, index) => ({ ...event, seq: index + 1, at: 0 })),
    );
    const order: string[] = [];
    let read = () => {};
    const owner: ResultOwner = {
      state,
      host: { runtime: systemRuntime },
      resolveCall: (key, call) => {
        if (key === "quick") return call.resolve(key);
        return new Promise<void>((resolve) => {
          read = () => {
            call.resolve(key);
            resolve();
          };
        });
      },
      onDeliveryIdle: () => {},
    };
    const results = new ResultDelivery(owner, 0);
    const all = Promise.all(["quick", "slow"].map((key) => results.request(key).then(() => order.push(key))));
    results.startDelivery();
    await macrotask();
    await macrotask();
    expect(order).toEqual([]);
    read();
    await all;
    expect(order).toEqual(["slow", "quick"]);
  });
});
