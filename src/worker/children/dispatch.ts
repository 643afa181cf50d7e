/** Nodes of frozen graphs: each attempt is a run of its own, for whichever worker has the job; its end comes back by mail. */

import { encode } from "../../core/encoding/encode.js";
import { toFailure } from "../../core/encoding/error-record.js";
import { jobWorkflow } from "../../core/naming/route.js";
import { nodeRunId } from "../../core/run/cancel-children.js";
import { event } from "../../core/run/event.js";
import { hasEnded, isDispatched, type Op, type StepOp } from "../../core/run/state.js";
import { childNode } from "../../core/run/step-key.js";
import type { JobInput } from "../../core/run/stored-schema.js";
import type { DispatchedNode } from "../../define/step-engine.js";
import type { CallScope } from "../replay/call-scope.js";
import type { JobInfo } from "../turn/host.js";
import type { StepTurn } from "../turn/ports.js";
import { readForTurn } from "../turn/read.js";
import { pauseIfItFails } from "../turn/user-code.js";
import { holdForMissingJob } from "./missing-job.js";

/** More nodes than this are handed out in several commits. With larger ones, this worker would be too slow to get its share. */
const startsPerCommit = 200;
/** Arguments as large as any payload, and what is said of the node beside them. */
const inputLimitBytes = 1024 * 1024 + 4_096;

export class Dispatcher {
  readonly #scope: CallScope;
  readonly #turn: StepTurn;
  readonly #sent = new Map<string, number>();
  readonly #jobs = new Map<string, JobInfo | Promise<JobInfo>>();
  /** While a part is being written: what comes after it. */
  #later: (readonly [DispatchedNode, StepOp | undefined, JobInfo])[] | null = null;

  constructor(scope: CallScope) {
    this.#scope = scope;
    this.#turn = scope.turn;
  }

  dispatch(node: DispatchedNode): Promise<unknown> {
    const op = this.#scope.recorded(node.id, "step");
    const answer = this.#scope.ask(node.id);
    this.#begin(node, op);
    return answer;
  }

  #begin(node: DispatchedNode, op: StepOp | undefined): void {
    const turn = this.#turn;
    // It may be tried again later, in this same turn.
    turn.inboxProcessor.retryLater(node.id, (later: Op | undefined) => this.#begin(node, later as StepOp | undefined));
    if (op !== undefined && (hasEnded(op) || isDispatched(op) || (op.dueAt ?? 0) > turn.storeNow())) return;
    if (!turn.phase.mayBegin(node.id)) return;
    const info = this.#jobOf(node.job);
    if (info instanceof Promise)
      pauseIfItFails(turn, () => turn.attempts.during(async () => this.#send(node, op, await info)));
    else this.#send(node, op, info);
  }

  #jobOf(job: string): JobInfo | Promise<JobInfo> {
    const known = this.#jobs.get(job);
    if (known !== undefined) return known;
    const { host } = this.#turn;
    const asked = readForTurn(this.#turn, () => host.jobInfo(job)).then((info) => {
      this.#jobs.set(job, info);
      return info;
    });
    this.#jobs.set(job, asked);
    return asked;
  }

  #send(node: DispatchedNode, op: StepOp | undefined, info: JobInfo): void {
    if (this.#later !== null) return void this.#later.push([node, op, info]);
    this.#handOut(node, op, info);
    if (this.#turn.pendingWrites.starts.length >= startsPerCommit)
      pauseIfItFails(this.#turn, () => this.#turn.attempts.during(() => this.#inParts()));
  }

  /** One after the other: the committer makes one commit of all that waits for it, however large that becomes. */
  async #inParts(): Promise<void> {
    const { pendingWrites } = this.#turn;
    this.#later = [];
    while (pendingWrites.empty || (await this.#turn.submit([]))) {
      const part = this.#later.splice(0, startsPerCommit);
      if (part.length === 0) break;
      for (const [node, op, info] of part) this.#handOut(node, op, info);
    }
    this.#later = null;
  }

  #handOut(node: DispatchedNode, op: StepOp | undefined, info: JobInfo): void {
    const turn = this.#turn;
    const { id, name, job, frozenAt } = node;
    if (!turn.phase.mayBegin(id)) return;
    if (info === null) return holdForMissingJob(turn, { id, name, job, frozenAt: Date.parse(frozenAt) });
    const attempt = (op?.attempt ?? turn.state.rewound?.get(id) ?? 0) + 1;
    // Until it is in the log, it still looks as if it had to be sent.
    if (this.#sent.get(id) === attempt) return;
    this.#sent.set(id, attempt);
    const owner = turn.keyOwner(id);
    const key = owner === turn.runId ? {} : { key: `${owner}:${id}` };
    const described = { run: turn.runId, node: { id, name }, attempt, failures: op?.failures ?? 0, ...key };
    // JSON has no undefined: with one, the input would be written in the slow way, and read in it.
    const input = (node.args === undefined ? described : { args: node.args, ...described }) as JobInput;
    const text = this.#written(input);
    if (text === null) return;
    turn.pendingWrites.starts.push({
      id: nodeRunId(turn.runId, turn.state, id, attempt),
      workflow: jobWorkflow(job),
      version: "",
      queue: info.queue,
      priority: turn.run.priority + info.priority,
      input: text,
      heroType: null,
      heroId: null,
      heroKey: null,
      tags: info.tags,
      startKey: null,
      parentId: turn.runId,
      parentNode: childNode(turn.state, id),
      parentIndex: null,
      parentAttempt: attempt,
      due: { kind: "now" },
    });
    turn.pendingWrites.events.push(event("node.dispatched", { node: id, attempt }, { job }));
    // Others are about to execute it, and tell.
    turn.parkDelay.expect();
    turn.scheduleIdleCheck();
  }

  /** Those of a step are computed as it begins, and may turn out to be unfit. A person has to see to that. */
  #written(input: JobInput): string | null {
    const { id, name } = input.node;
    try {
      return encode(input, { what: `the arguments of node "${name}"`, limit: inputLimitBytes });
    } catch (error) {
      const failure = toFailure(error);
      this.#turn.pauseWithError(failure.message, failure, id);
      return null;
    }
  }
}
