import { describe, expect, test } from "vitest";
import { event, type NewEvent } from "../../core/run/event.js";
import { evolve, fold } from "../../core/run/fold.js";
import type { RunState } from "../../core/run/state.js";
import { systemRuntime } from "../../runtime/system.js";
import { Answers, type AnswersOwner } from "./result-delivery.js";

const completed = (node: string) => event("step.completed", { node, attempt: 1 }, {}, { output: JSON.stringify(node) });
const macrotask = () => new Promise((resolve) => setImmediate(resolve));

function open(...recorded: NewEvent[]) {
  const state: RunState = fold(recorded.map((one, index) => ({ ...one, seq: index + 1, at: (index + 1) * 10 })));
  let idle = 0;
  const owner: AnswersOwner = {
    state,
    host: { runtime: systemRuntime },
    settleCall: (key, call) => call.resolve(key),
    onAnswersIdle: () => {
      idle += 1;
    },
  };
  const answers = new Answers(owner, 1);
  const write = (...events: NewEvent[]) => {
    for (const one of events) evolve(state, { ...one, seq: state.seq + 1, at: (state.seq + 1) * 10 });
    answers.deliver();
  };
  return { answers, write, idle: () => idle };
}

describe("answers", () => {
  test("come in the order of the log, each after everything the one before set off", async () => {
    const { answers } = open(completed("b"), completed("a"), completed("c"));
    const order: string[] = [];
    const chain = (key: string) =>
      answers
        .ask(key)
        .then(() => order.push(key))
        .then(() => {})
        .then(() => {})
        .then(() => order.push(`after ${key}`));
    const all = Promise.all([chain("a"), chain("b"), chain("c")]);
    answers.open();
    await all;
    expect(order).toEqual(["b", "after b", "a", "after a", "c", "after c"]);
  });

  test("are not handed over before there is code that could have asked", async () => {
    const { answers, write } = open(completed("a"));
    write(completed("b"));
    await macrotask();
    expect(answers.now).toBe(1);
    const order: unknown[] = [];
    void answers.ask("b").then((key) => order.push(key));
    void answers.ask("a").then((key) => order.push(key));
    answers.open();
    while (order.length < 2) await macrotask();
    expect(order).toEqual(["a", "b"]);
  });

  test("move the code's idea of now to the instant of each answer", async () => {
    const { answers } = open(completed("a"), completed("b"));
    const times: number[] = [];
    const note = () => times.push(answers.now);
    const all = Promise.all([answers.ask("a").then(note), answers.ask("b").then(note)]);
    note();
    answers.open();
    await all;
    expect(times).toEqual([1, 10, 20]);
  });

  test("that passed before the code asked are given at once", async () => {
    const { answers } = open(completed("a"), completed("b"));
    const b = answers.ask("b");
    answers.open();
    expect(await b).toBe("b");
    expect(await answers.ask("a")).toBe("a");
  });

  test("come live as they are written", async () => {
    const { answers, write, idle } = open();
    answers.open();
    const a = answers.ask("a");
    write(completed("a"));
    expect(await a).toBe("a");
    expect(idle()).toBe(1);
    expect(answers.delivering).toBe(false);
  });

  test("to a call that was added come at once, and those that the code asks for only behind it wait for it", async () => {
    const { answers } = open(completed("a"), completed("b"), completed("added"));
    const came: string[] = [];
    answers.open();
    const other = answers.ask("a").then(() => came.push("a"));
    const added = answers.askOutOfOrder("added").then(async () => {
      came.push("added");
      await answers.ask("b");
      came.push("b");
    });
    await Promise.all([other, added]);
    expect(came).toEqual(["added", "a", "b"]);
  });

  test("that are stuck behind a call without an answer do not keep the run from being parked", async () => {
    const { answers, write } = open(completed("a"));
    answers.open();
    const added = answers.askOutOfOrder("added");
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
    expect(answers.delivering).toBe(false);
    write(completed("added"));
    expect(await added).toBe("added");
    expect(await answers.ask("a")).toBe("a");
  });

  test("that are forgotten never come; the others do", async () => {
    const { answers, write } = open();
    answers.open();
    let came = false;
    void answers.ask("a").then(() => {
      came = true;
    });
    answers.forget("a");
    const b = answers.ask("b");
    write(completed("a"), completed("b"));
    expect(await b).toBe("b");
    expect(came).toBe(false);
  });

  test("stop when they are closed: what is pending never settles", async () => {
    const { answers, write } = open();
    answers.open();
    let came = false;
    void answers.ask("a").then(() => {
      came = true;
    });
    answers.close();
    write(completed("a"));
    await macrotask();
    await macrotask();
    expect(came).toBe(false);
  });

  test("that take reading more hold up those behind them", async () => {
    const state = fold(
      [completed("slow"), completed("quick")].map((one, index) => ({ ...one, seq: index + 1, at: 0 })),
    );
    const order: string[] = [];
    let read = () => {};
    const owner: AnswersOwner = {
      state,
      host: { runtime: systemRuntime },
      settleCall: (key, call) => {
        if (key === "quick") return call.resolve(key);
        return new Promise<void>((resolve) => {
          read = () => {
            call.resolve(key);
            resolve();
          };
        });
      },
      onAnswersIdle: () => {},
    };
    const answers = new Answers(owner, 0);
    const all = Promise.all(["quick", "slow"].map((key) => answers.ask(key).then(() => order.push(key))));
    answers.open();
    await macrotask();
    await macrotask();
    expect(order).toEqual([]);
    read();
    await all;
    expect(order).toEqual(["slow", "quick"]);
  });
});
