/** A small shop without mistakes, which the mistakes use. It is copied into a project of its own. */
import {
  type AnyWorkflow,
  job,
  type Pawl,
  RunFailedError,
  type RunHandle,
  signal,
  Workflow,
  type WorkflowDefinition,
  workflow,
} from "pawl";

export interface User {
  readonly id: number;
  readonly name: string;
}

export const ada: User = { id: 42, name: "Ada" };
export const users = { find: async (id: string): Promise<User | null> => (id === "42" ? ada : null) };
export const mail = { welcome: async (_user: User): Promise<void> => {} };

export interface Order {
  readonly sku: string;
  readonly cents: number;
}

export const order = workflow("order", async (ctx, input: Order) => ({
  shelf: await ctx.step("reserve", () => `shelf of ${input.sku}`),
}));

export class Onboarding extends Workflow<User, { plan: string }> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_welcome", (w) => mail.welcome(w.hero));
  }
}

export class Goodbye extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_goodbye", (w) => mail.welcome(w.hero));
  }
}

export const resize = job("Resize", async (args: { file: string }) => args.file);
export const approved = signal<{ by: string }>("approved");

/** A hand-written Standard Schema. */
export const positive = {
  "~standard": {
    version: 1 as const,
    vendor: "shop",
    validate: (value: unknown) =>
      typeof value === "number" && value > 0
        ? { value }
        : { issues: [{ message: `expected a number above 0, got ${String(value)}` }] },
    types: undefined as { readonly input: number; readonly output: number } | undefined,
  },
};

/** The error with which a run of this workflow failed. */
export async function finished(pawl: Pawl, of: WorkflowDefinition<any, any>): Promise<unknown> {
  const worker = await pawl.worker({ workflows: [of, order] }).start();
  const run = await pawl.start(of as WorkflowDefinition<void, unknown>);
  try {
    return await run.result({ timeout: "100s" });
  } catch (error) {
    return error instanceof RunFailedError ? (error.cause as Error).message : error;
  } finally {
    await worker.stop();
  }
}

/** The reason for which this run was paused. */
export async function paused(pawl: Pawl, run: RunHandle<any, any>, of: AnyWorkflow): Promise<unknown> {
  const worker = await pawl.worker({ workflows: [of] }).start();
  try {
    for (;;) {
      const { status, pauseReason } = await run.get();
      if (pauseReason !== null) return pauseReason;
      if (status === "completed") return "It completed.";
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  } finally {
    await worker.stop();
  }
}
