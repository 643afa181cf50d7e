/** A folder whose database contains a run in every state, without a worker. */
import { connect, type Pawl, type RunStatus } from "pawl";
import { until } from "../support/waiting.js";
import { Folder } from "./command-line.js";
import * as fixtures from "./fixtures/workflows.js";

export const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

export interface SampleRuns {
  readonly folder: Folder;
  /** Run ids by workflow. */
  readonly ids: Readonly<Record<"order" | "echo" | "declined" | "held" | "onboarding" | "later" | "flaky", string>>;
}

export async function folderWithSampleRuns(): Promise<SampleRuns> {
  const folder = new Folder();
  const pawl = await connect(folder.url, { logger: silent });
  const worker = await pawl.worker({ workflows: Object.values(fixtures) }).start();
  const start = async (name: string, status: RunStatus, input?: unknown, options: object = {}) => {
    const run = await pawl.workflow(name).trigger(input, options);
    await until(async () => (await run.status()) === status);
    return run.id;
  };
  const ids = {
    order: await start(
      "order",
      "waiting",
      { sku: "A-1" },
      { tags: ["big", "vip"], idempotencyKey: "cart-77", priority: 5 },
    ),
    echo: await start("echo", "completed", { when: new Date(0), big: 12n, map: new Map([["a", 1]]) }),
    declined: await start("declined", "failed"),
    held: await start("held", "paused"),
    onboarding: await start("Onboarding", "waiting", undefined, { hero: { type: "User", id: "42" } }),
    flaky: await start("flaky", "completed"),
    later: await start("echo", "pending", "later", { delay: "1 day" }),
  };
  await worker.stop();
  await pawl.close();
  return { folder, ids };
}

/** Executes the runs of the folder in this process while `act` runs. */
export async function withWorker<T>({ url }: Folder, act: (pawl: Pawl) => Promise<T>): Promise<T> {
  const pawl = await connect(url, { logger: silent });
  try {
    await pawl.worker({ workflows: Object.values(fixtures) }).start();
    return await act(pawl);
  } finally {
    await pawl.close();
  }
}
