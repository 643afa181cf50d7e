/**
 * What the examples in JSDoc comments may use without declaring it: Pawl's objects, and the objects of an application.
 * Add a name here when an example needs it. (Public names of Pawl are imported where an example uses them.)
 */
export const prelude = `
import {
  type GraphBuilder, type JobDefinition, type Pawl, type RunHandle, type StepHandle, type StepIterator, type Store,
  type Worker, Workflow, type WorkflowContext, type WorkflowDefinition,
} from "pawl";
import type { TestPawl } from "pawl/testing";

declare global {
  // Pawl
  const pawl: Pawl;
  const ctx: WorkflowContext<any>;
  const run: RunHandle<any, any>;
  const worker: Worker;
  const store: Store;
  const iter: StepIterator;
  const g: GraphBuilder;
  const t: TestPawl;
  function isFromOurNetwork(request: Request): boolean;

  // Workflows, jobs and steps of an application. Some examples have functions of the same name.
  const order: WorkflowDefinition<any, any>;
  const report: WorkflowDefinition<any, any>;
  const importRow: WorkflowDefinition<any, any>;
  const printLabel: WorkflowDefinition<{ orderId: string }, string>;
  class Onboarding extends Workflow<User> {
    static heroType: "User";
    static loadHero: (id: string) => Promise<User | null>;
  }
  const resize: JobDefinition<any, any>;
  const aggregate: JobDefinition<any, any>;
  const importPart: JobDefinition<{ id: string }, void>;
  const notify: JobDefinition<{ user: string }, void> & ((id: string) => Promise<void>);
  const validate: StepHandle<"validate", Order, { readonly total: number }>;
  const charge: StepHandle<"charge", Order, string>;
  const fraud: StepHandle<"fraud", Order, { readonly score: number }> & { check(user: User): Promise<void> };
  const manualReview: StepHandle<"manual_review", Order, void>;
  const approve: StepHandle<"approve", Order, void> & ((orderId: string) => Promise<void>);

  // Everything else
  type PoolClient = import("pg").PoolClient;
  interface User { readonly id: string; readonly email: string; readonly deactivated: boolean }
  interface Order { readonly id: string; readonly total: number }
  const user: User;
  const users: {
    find(id: string): Promise<User | null>;
    findAfter(id: number, limit: number): Promise<readonly { readonly id: number }[]>;
  };
  const mail: { send(...args: any[]): Promise<string>; welcome(user: User): Promise<void>; reminder(user: User): Promise<void> };
  const payments: { charge(...args: any[]): Promise<{ readonly id: string }>; refund(...args: any[]): Promise<void> };
  const pay: (...args: any[]) => Promise<string>;
  const refund: (receipt: string) => Promise<void>;
  const pack: (orderId: string) => Promise<void>;
  const ship: (user: User) => Promise<void>;
  const archive: (document: unknown) => Promise<void>;
  const images: { resize(file: string, options?: object): Promise<void> };
  const importPage: (page: number) => Promise<void>;
  const linesFrom: (position: number) => AsyncIterable<[line: string, position: number]>;
  const importLine: (line: string) => Promise<void>;
  const ids: readonly string[];
  const rows: readonly object[];
  const input: any;
  const webhook: { readonly id: string };
  const app: { get(path: string, handler: (request: any, reply: any) => unknown): void };
  const tracer: { startActiveSpan<Result>(name: string, work: () => Result): Result };
}
`;

/** The class around an example that shows statements of a class's static block: \`this.step(…)\`. */
export const inStaticBlock = (
  code: string,
): string => `class Example extends Workflow<User, { ids: readonly string[] }> {
  static heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
${code}
  }
  async send_reminder() {}
  unsubscribed() {
    return false;
  }
}
`;
