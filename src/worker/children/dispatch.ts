/**
 * Dispatches the nodes of frozen graphs. Each attempt at a node is a separate run that any worker with the node's job may
 * execute; when that run ends, it sends its result to the run of the graph as a message.
 */

import { encode } from "../../core/encoding/encode.js";
import { toFailure } from "../../core/encoding/error-record.js";
import { jobWorkflow } from "../../core/naming/route.js";
import { nodeRunId } from "../../core/run/cancel-children.js";
import { newEvent } from "../../core/run/event.js";
import { hasEnded, isDispatched, type Op, type StepOp } from "../../core/run/state.js";
import { childNode } from "../../core/run/step-key.js";
import type { JobInput } from "../../core/run/stored-schema.js";
import type { DispatchedNode } from "../../define/step-engine.js";
import type { CallScope } from "../replay/call-scope.js";
import type { StepTurn } from "../turn/ports.js";
import { readForTurn } from "../turn/read.js";
import type { JobInfo } from "../turn/turn-host.js";
import { pauseRunOnError } from "../turn/user-code.js";
import { pauseForMissingJob } from "./missing-job.js";

/**
 * The number of nodes that one commit dispatches. With larger commits, other workers would claim most of the nodes before
 * this worker can claim its share.
 */
const startsPerCommit = 200;
/** The input contains the arguments, limited like any payload to 1 MB, and the description of the node. */
const inputLimitBytes = 1024 * 1024 + 4_096;

export class Dispatcher {
  readonly #scope: CallScope;
  readonly #turn: StepTurn;
  readonly #dispatchedAttempts = new Map<string, number>();
  readonly #jobs = new Map<string, JobInfo | Promise<JobInfo>>();
  /** The nodes that are dispatched after the batch that is being committed; null when no batch is being committed. */
  #queuedNodes: (readonly [DispatchedNode, StepOp | undefined, JobInfo])[] | null = null;

  constructor(scope: CallScope) {
    this.#scope = scope;
    this.#turn = scope.turn;
  }

  dispatch(node: DispatchedNode): Promise<unknown> {
    const op = this.#scope.findRecorded(node.id, "step");
    const result = this.#scope.requestResult(node.id);
    this.#startNode(node, op);
    return result;
  }

  #startNode(node: DispatchedNode, op: StepOp | undefined): void {
    const turn = this.#turn;
    // Registered in any case, because the node may have to be attempted again in the same turn.
    turn.inboxProcessor.scheduleRetry(node.id, (retriedOp: Op | undefined) =>
      this.#startNode(node, retriedOp as StepOp | undefined),
    );
    if (op !== undefined && (hasEnded(op) || isDispatched(op) || (op.dueAt ?? 0) > turn.storeNow())) return;
    if (!turn.phase.mayStart(node.id)) return;
    const info = this.#readJobInfo(node.job);
    if (info instanceof Promise)
      pauseRunOnError(turn, () =>
        turn.attempts.preventParkingDuring(async () => this.#enqueueNode(node, op, await info)),
      );
    else this.#enqueueNode(node, op, info);
  }

  #readJobInfo(job: string): JobInfo | Promise<JobInfo> {
    const cachedInfo = this.#jobs.get(job);
    if (cachedInfo !== undefined) return cachedInfo;
    const { host } = this.#turn;
    const pendingRead = readForTurn(this.#turn, () => host.jobInfo(job)).then((info) => {
      this.#jobs.set(job, info);
      return info;
    });
    this.#jobs.set(job, pendingRead);
    return pendingRead;
  }

  #enqueueNode(node: DispatchedNode, op: StepOp | undefined, info: JobInfo): void {
    if (this.#queuedNodes !== null) return void this.#queuedNodes.push([node, op, info]);
    this.#dispatchNode(node, op, info);
    if (this.#turn.pendingWrites.starts.length >= startsPerCommit)
      pauseRunOnError(this.#turn, () => this.#turn.attempts.preventParkingDuring(() => this.#dispatchInBatches()));
  }

  /** Waits for each batch to be committed, because the committer would merge batches that wait at the same time. */
  async #dispatchInBatches(): Promise<void> {
    const { pendingWrites } = this.#turn;
    this.#queuedNodes = [];
    while (pendingWrites.isEmpty || (await this.#turn.submit([]))) {
      const batch = this.#queuedNodes.splice(0, startsPerCommit);
      if (batch.length === 0) break;
      for (const [node, op, info] of batch) this.#dispatchNode(node, op, info);
    }
    this.#queuedNodes = null;
  }

  #dispatchNode(node: DispatchedNode, op: StepOp | undefined, info: JobInfo): void {
    const turn = this.#turn;
    const { id, name, job, frozenAt } = node;
    if (!turn.phase.mayStart(id)) return;
    if (info === null) return pauseForMissingJob(turn, { id, name, job, frozenAt: Date.parse(frozenAt) });
    const attempt = (op?.attempt ?? turn.state.attemptsBeforeRewind?.get(id) ?? 0) + 1;
    // Prevents a second dispatch: until `node.dispatched` is in the log, the state does not show the attempt.
    if (this.#dispatchedAttempts.get(id) === attempt) return;
    this.#dispatchedAttempts.set(id, attempt);
    const idempotencyRunId = turn.keyOwner(id);
    const key = idempotencyRunId === turn.runId ? {} : { key: `${idempotencyRunId}:${id}` };
    const description = { run: turn.runId, node: { id, name }, attempt, failures: op?.countedFailures ?? 0, ...key };
    // `args` is left out if it is undefined, because JSON has no undefined and the encoder would need its slower format.
    const input = (node.args === undefined ? description : { args: node.args, ...description }) as JobInput;
    const text = this.#encodeInput(input);
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
    turn.pendingWrites.events.push(newEvent("node.dispatched", { node: id, attempt }, { job }));
    // The run of the node will send a message when it ends.
    turn.parkDelay.expectMessages();
    turn.scheduleIdleCheck();
  }

  /** Returns null and pauses the run if the node's arguments, which are computed when it starts, cannot be encoded. */
  #encodeInput(input: JobInput): string | null {
    const { id, name } = input.node;
    try {
      return encode(input, { label: `the arguments of node "${name}"`, limitBytes: inputLimitBytes });
    } catch (error) {
      const failure = toFailure(error);
      this.#turn.pauseWithError(failure.message, failure, id);
      return null;
    }
  }
}
