/** Bugs of the kinds that durable workflows have had elsewhere. The simulation must find each of them. */
import { type Mutant, mutant } from "./mutant.js";

export const mutants: readonly Mutant[] = [
  mutant(
    "missing-fence-check",
    "The database accepts writes of a worker that has lost its lease.",
    [
      "store/memory/commit.ts",
      `if (batch.fence !== null && !this.#rows.isFenceValid(batch.fence)) return { kind: "fenced" };\n    for`,
      "for",
    ],
    [
      "store/memory/commit.ts",
      "task.owner === batch.fence.workerId && task.epoch === batch.fence.epoch",
      `task.state === "owned"`,
    ],
  ),
  mutant("epoch-not-raised", "A worker that registers again gets the epoch that it had before.", [
    "store/memory/index.ts",
    "(previousRecord?.epoch ?? 0) + 1",
    "previousRecord?.epoch ?? 1",
  ]),
  mutant("claim-under-a-dead-fence", "A worker that was given up as dead may still claim runs.", [
    "store/memory/index.ts",
    `if (!this.#rows.isFenceValid(fence)) return { kind: "fenced" };\n    const at`,
    "const at",
  ]),
  mutant("doubled-message", "A signal that is sent again under the same key is received twice.", [
    "core/run/decide-signals.ts",
    "if (decision.state.signalKeys?.has(key) || decision.receivedSignalKeys.has(key)) return;",
    "",
  ]),
  mutant("message-dropped-at-the-end", "A run may end although a message has arrived that it has not read.", [
    "store/memory/commit.ts",
    `if (next.kind === "finish" && this.#hasUnreadMessages(runId, drainedInboxIds))`,
    `if (next.kind === "finish" && drainedInboxIds.length < 0)`,
  ]),
  mutant("signals-out-of-order", "A wait takes the newest signal of its name, not the oldest.", [
    "core/run/decide-signals.ts",
    "const signal = decision.pendingSignals.find((candidate) => names.includes(candidate.name));",
    "const signal = decision.pendingSignals.findLast((candidate) => names.includes(candidate.name));",
  ]),
  mutant("early-timer", "Timers fire up to 200 ms before they are due.", [
    "core/run/decide-time.ts",
    "timer !== undefined && timer.dueAt <= now;",
    "timer !== undefined && timer.dueAt <= now + 200;",
  ]),
  mutant("early-retry", "The next attempt at a step that failed is due at once.", [
    "core/run/fold-step.ts",
    "scheduleAttempt(op, event.at + retryMs);",
    "scheduleAttempt(op, event.at);",
  ]),
  mutant("lost-wake-up", "A message to a parked run does not make its task due.", [
    "store/memory/commit.ts",
    "task.pendingMessages += 1;\n      this.#makeReady(task, at);",
    "task.pendingMessages += 1;",
  ]),
  mutant("lost-wake-up-by-a-client", "A client that completes the wait of a parked run does not make its task due.", [
    "core/run/park.ts",
    "wakeInMs: hasUnseenChanges ? 0 : null,",
    "wakeInMs: null,",
  ]),
  mutant("child-never-released", "A held child of a map is not released when another one has ended.", [
    "worker/children/children.ts",
    "if (!op.endedIndexes.has(index)) turn.pendingWrites.releasedChildIds.push(childId(turn, key, index));\n    turn.",
    "turn.",
  ]),
  mutant("orphaned-child", "Children that the code awaits are not canceled when their parent is.", [
    "core/run/cancel-children.ts",
    `if (op.kind === "child" && op.phase === "open") messages.push(cancelMessageTo(op.runId));`,
    "",
  ]),
  mutant(
    "stale-read-in-a-command",
    "A client's command is accepted although the log has grown since the client read it.",
    [
      "store/memory/commit.ts",
      "(events.length > 0 && logLength !== afterSeq)",
      "(batch.fence !== null && events.length > 0 && logLength !== afterSeq)",
    ],
  ),
  mutant("start-told-before-commit", "A client is told that its run was started before that is written.", [
    "client/start/start-batcher.ts",
    "    try {\n      const result = await this.#store.commit",
    "    for (const start of batch) resolveStart(start, []);\n    try {\n      const result = await this.#store.commit",
  ]),
  mutant("result-told-before-commit", "A commit whose connection failed counts as written.", [
    "worker/commit/group-committer.ts",
    "isUncertain = hasFailed = true;",
    `return this.#acknowledge(entries, starts, { kind: "committed", at: this.runtime.now(), notParked: [], ownedWithMessages: [], refused: [] });`,
  ]),
  mutant("step-repeated-after-replay", "A step whose result is recorded is executed again when the run is replayed.", [
    "worker/step/step.ts",
    `new Set(["completed", "failed", "skipped"])`,
    `new Set(["failed", "skipped"])`,
  ]),
  mutant("retry-that-repeats-a-step", "The retry of a failed run executes completed steps again.", [
    "core/run/fork.ts",
    `return op.phase === "completed" || (op.phase === "skipped" && !this.#canceledSteps.has(node));`,
    `return op.phase === "skipped" && !this.#canceledSteps.has(node);`,
  ]),
  mutant("transaction-without-its-record", "The commit of a transactional step leaves out the record of the step.", [
    "worker/step/transaction.ts",
    "fence: committer.fence, transitions: [transition], starts: [] });",
    "fence: committer.fence, transitions: transition.events.length > 1 ? [transition] : [], starts: [] });",
  ]),
  mutant(
    "cursor-not-written",
    "An execution of a resumable step that is interrupted does not write how far it has come.",
    ["worker/step/checkpoints.ts", "cursor: isOver ? null : this.#encoded(), progress", "cursor: null, progress"],
  ),
  mutant("endless-crash-loop", "A run that kills its workers is never quarantined.", [
    "worker/turn/crash-loop.ts",
    "  const reason = `Its worker",
    "  if (deaths >= 0) return true;\n  const reason = `Its worker",
  ]),
  mutant("occurrence-fired-twice", "Two workers may fire the same instant of a schedule.", [
    "store/memory/schedules.ts",
    "(rows.schedules.get(name)?.revision ?? null) === expectedRevision && (expectedRevision ?? row) !== null",
    "(expectedRevision ?? row) !== null",
  ]),
  mutant("leaked-slot", "A run of a workflow with a limit keeps its slot when it is parked or ends.", [
    "worker/limits/slot-keeper.ts",
    "{ ...next, releasesSlots: true as const }",
    "{ ...next }",
  ]),
  mutant("offers-do-not-lapse", "A slot that is offered to a run which does not make the call again is never free.", [
    "store/memory/step-slots.ts",
    "(!slot.isWaiting && (slot.offeredUntil as number) <= at)",
    "false",
  ]),
  mutant("parked-without-a-place", "The place of a step in the line is lost when its run is parked.", [
    "store/memory/step-slots.ts",
    "slots.put({ ...slot, owner: null, epoch: null });",
    "slots.release(lane, slot);",
  ]),
  mutant("limit-exceeded", "An admission lets one more run begin than the limit has slots.", [
    "core/limits/admission.ts",
    "const roomOf = new Map(lanes.map((lane) => [lane.id, roomIn(lane, now)]));",
    "const roomOf = new Map(lanes.map((lane) => [lane.id, roomIn(lane, now) + 1]));",
  ]),
];
