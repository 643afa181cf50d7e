/**
 * New code, or another graph, for open runs of a class with tasks: completed nodes stay completed, and changes are
 * recorded.
 */
import { type RunHandle, Workflow, type WorkflowClass, workflow } from "pawl";
import type { TestPawl } from "pawl/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { attemptsOf, expectSound } from "../support/run-checks.js";
import { start, world } from "../support/virtual-worlds.js";
import { errorOf } from "../support/waiting.js";

let executed: string[] = [];
beforeEach(() => {
  executed = [];
});

interface TaskOptions {
  readonly after?: string | readonly string[] | null;
  readonly wait?: string;
}

/**
 * A class called "Parcel": names are steps, those with `after` are tasks. A node written as "name@" waits for an hour
 * first.
 */
function parcelWith(
  nodes: Record<string, TaskOptions | null>,
  removed: readonly string[] = [],
): WorkflowClass<Workflow> {
  return class Parcel extends Workflow {
    static {
      this.options({ name: "Parcel" });
      this.removedSteps(removed);
      for (const [spec, taskOptions] of Object.entries(nodes)) {
        const name = spec.replace("@", "");
        const wait = spec.endsWith("@") ? { wait: "1 hour" } : {};
        if (taskOptions === null) this.step(name, wait, () => void executed.push(name));
        else this.task(name, { dependsOn: taskOptions.after ?? null, ...wait }, () => void executed.push(name));
      }
    }
  };
}

const task = (...after: string[]): TaskOptions => ({ after });

async function runThroughDeploy(from: WorkflowClass<Workflow>, to: WorkflowClass<Workflow>) {
  const t = await start(from);
  const run = await t.pawl.start(from);
  await t.settle();
  await t.deploy([to]);
  await t.advance("1h");
  return { t, run };
}

const changesOf = async (run: RunHandle<any, any>) =>
  (await run.history()).filter(({ type }) => type === "shape.changed").map(({ data }) => data);

const shape = expect.any(String);

describe("a deploy", () => {
  test("with the same shape records no change", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, "weigh@": task("pack"), send: null }),
      parcelWith({ pack: null, send: null, "weigh@": task("pack") }),
    );
    expect(await run.status()).toBe("completed");
    expect(await changesOf(run)).toEqual([]);
    expect(executed).toEqual(["pack", "send", "weigh"]);
  });

  test("that adds a task runs it, even when later nodes have completed", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, label: task("pack"), "send@": null }),
      parcelWith({ pack: null, weigh: task("pack"), label: task("pack", "weigh"), "send@": null }),
    );
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["label", "pack", "send", "weigh"]);
    expect(await changesOf(run)).toEqual([{ shape, passedSteps: ["weigh"] }]);
  });

  test("that removes a completed task on purpose continues, and records that the task has vanished", async () => {
    const { t, run } = await runThroughDeploy(
      parcelWith({ pack: null, label: task("pack"), "send@": null }),
      parcelWith({ pack: null, "send@": null, stamp: task("pack") }, ["label"]),
    );
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["label", "pack", "send", "stamp"]);
    expect(await changesOf(run)).toEqual([{ shape, removedSteps: ["label"] }]);
    expect((await run.nodes()).find(({ name }) => name === "label")).toMatchObject({ state: "removed" });
    await expectSound(t);
  });

  test("that removes a waiting task pauses the run; skip() skips the task", async () => {
    const { t, run } = await runThroughDeploy(
      parcelWith({ pack: null, "label@": task("pack"), "send@": null }),
      parcelWith({ pack: null, "send@": null, stamp: task("pack") }),
    );
    expect(await run.get()).toMatchObject({
      status: "paused",
      pauseReason: expect.stringContaining('has no step "label"'),
    });
    expect(executed).toEqual(["pack"]);
    await run.skip();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["pack", "send", "stamp"]);
    expect(await attemptsOf(run)).toContain("label 1 skipped skipped_by_flow_control");
  });

  test("that restores the task lets the run be resumed", async () => {
    const old = parcelWith({ pack: null, "label@": task("pack"), "send@": null });
    const { t, run } = await runThroughDeploy(old, parcelWith({ pack: null, "send@": null, stamp: task("pack") }));
    await t.deploy([old]);
    await run.resume();
    await t.settle();
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["label", "pack", "send"]);
  });

  test("that lists the task in removedSteps skips it", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, "label@": task("pack"), "send@": null }),
      parcelWith({ pack: null, "send@": null, stamp: task("pack") }, ["label"]),
    );
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["pack", "send", "stamp"]);
    expect(await attemptsOf(run)).toContain("label 1 skipped skipped_by_flow_control");
  });

  test("that changes dependencies applies to nodes that have not started", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, "label@": task("pack"), send: task("label"), bill: task("label") }),
      parcelWith({ pack: null, "label@": task("pack"), bill: task("label"), send: task("bill") }),
    );
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["pack", "label", "bill", "send"]);
    expect(await changesOf(run)).toEqual([{ shape }]);
  });

  test("that gives a chain its first task: the run continues where it was, and the task runs", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, "send@": null, close: null }),
      parcelWith({ pack: null, "send@": null, close: null, weigh: task("pack") }),
    );
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["close", "pack", "send", "weigh"]);
  });

  test("that gives a chain its first task does not restart a run that was moved by resumeAt", async () => {
    const chain = parcelWith({ pack: null, "send@": null, "sign@": null, close: null });
    const t = await start(chain);
    const run = await t.pawl.start(chain);
    await t.settle();
    await run.pause();
    await run.resumeAt("sign");
    await t.deploy([parcelWith({ pack: null, "send@": null, "sign@": null, close: null, weigh: task("pack") })]);
    await t.advance("1h");
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["close", "pack", "sign", "weigh"]);
  });

  test("that removes a chain's last task: every node that waits is still run", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, "send@": null, "label@": task("pack") }),
      parcelWith({ pack: null, "send@": null, "label@": null }),
    );
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["label", "pack", "send"]);
  });

  test("that removes a chain's last task: every node that has not started is still run", async () => {
    const { run } = await runThroughDeploy(
      parcelWith({ pack: null, send: null, "rest@": task("pack"), label: task("rest") }),
      parcelWith({ pack: null, label: null, send: null, "rest@": null }),
    );
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["label", "pack", "rest", "send"]);
  });
});

interface Dag {
  nodes: Record<string, { name: string; job?: string; args?: unknown; depends_on: string[] }>;
}

describe("the graph of a class run", () => {
  const Sending = parcelWith({ pack: null, "label@": task("pack"), "send@": null, bill: task("label", "send") });

  /** A paused run, with "pack" completed and two nodes that wait. */
  async function paused(): Promise<{ t: TestPawl; run: RunHandle<any, any> }> {
    const t = await start(Sending);
    const run = await t.pawl.start(Sending);
    await t.settle();
    await run.pause();
    return { t, run };
  }

  const exportEdited = async (run: RunHandle<any, any>, edit: (dag: Dag) => void): Promise<string> => {
    const dag = JSON.parse(await run.exportDag()) as Dag;
    edit(dag);
    return JSON.stringify(dag);
  };

  test("is exported with the names of its steps", async () => {
    const { run } = await paused();
    expect(JSON.parse(await run.exportDag())).toEqual({
      version: 1,
      signature: expect.stringMatching(/^[0-9a-f]{16}$/),
      frozen_at: (await run.get()).createdAt.toISOString(),
      nodes: {
        pack: { name: "pack", depends_on: [] },
        send: { name: "send", depends_on: ["pack"] },
        label: { name: "label", depends_on: ["pack"] },
        bill: { name: "bill", depends_on: ["label", "send"] },
      },
    });
  });

  test("takes precedence over the class once imported: its dependencies apply, and a node that was left out does not run", async () => {
    const { t, run } = await paused();
    await run.importDag(
      await exportEdited(run, ({ nodes }) => {
        delete nodes.label;
        nodes.bill = { name: "bill", depends_on: ["pack"] };
        nodes.send = { name: "send", depends_on: ["bill"] };
      }),
    );
    await run.resume();
    await t.settle();
    expect(executed).toEqual(["pack", "bill"]);
    await t.advance("1h");
    expect(await run.status()).toBe("completed");
    expect(executed).toEqual(["pack", "bill", "send"]);
    expect((await run.nodes()).map(({ name, state }) => `${name} ${state}`)).toEqual([
      "pack completed",
      "send completed",
      "bill completed",
      expect.stringMatching(/^label (removed|canceled)$/),
    ]);
    await expectSound(t);
  });

  test("no longer changes with the code once imported", async () => {
    const { t, run } = await paused();
    await run.importDag(await run.exportDag());
    await t.deploy([parcelWith({ first: null, pack: null, "label@": null, "send@": null, bill: null, last: task() })]);
    await run.resume();
    await t.advance("1h");
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["bill", "label", "pack", "send"]);
  });

  test("is refused when it drops or rewires a completed node, names an unknown step, or has a cycle", async () => {
    const { run } = await paused();
    const before = await run.history();
    const refused: readonly [(dag: Dag) => void, RegExp][] = [
      [({ nodes }) => delete nodes.pack, /pack/],
      [({ nodes }) => (nodes.pack as { depends_on: string[] }).depends_on.push("stamp"), /stamp/],
      [
        ({ nodes }) => {
          nodes.stamp = { name: "stamp", depends_on: [] };
        },
        /"stamp".*names no job/,
      ],
      [({ nodes }) => (nodes.label as { depends_on: string[] }).depends_on.push("bill"), /circle: /],
    ];
    for (const [edit, problem] of refused) {
      const error = await errorOf(run.importDag(await exportEdited(run, edit)));
      expect(error).toMatchObject({ code: "GRAPH_ERROR", message: expect.stringMatching(problem) });
    }
    expect(await run.history()).toEqual(before);
  });

  test("can only be imported into a run that is paused", async () => {
    const t = await start(Sending);
    const run = await t.pawl.start(Sending);
    await t.settle();
    expect(await errorOf(run.importDag(await run.exportDag()))).toMatchObject({ code: "INVALID_STATE" });
  });

  test("does not exist for a function", async () => {
    const w = await world();
    const run = await w.pawl.start(workflow("plain", async () => {}));
    expect(await errorOf(run.exportDag())).toMatchObject({ code: "INVALID_STATE" });
  });

  test("of a pure chain can be imported too, and turns the chain into a graph", async () => {
    const Chain = parcelWith({ pack: null, "label@": null, "send@": null });
    const t = await start(Chain);
    const run = await t.pawl.start(Chain);
    await t.settle();
    await run.pause();
    await run.importDag(
      await exportEdited(run, ({ nodes }) => {
        nodes.send = { name: "send", depends_on: ["pack"] };
      }),
    );
    await run.resume();
    await t.advance("1h");
    expect(await run.status()).toBe("completed");
    expect(executed.toSorted()).toEqual(["label", "pack", "send"]);
  });
});
