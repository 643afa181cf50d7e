/**
 * The bugs of this library that the simulation has found, each as a mutant that brings it back, with a seed that finds it in the present
 * version of the simulated workflows.
 */
import type { FaultRates } from "../kernel/faults.js";
import { type Mutant, mutant } from "./mutant.js";

export interface FoundBug extends Mutant {
  readonly seed: number;
  /** Kinds of faults that the world has more often than its seed says, because the bug needs many of them in a moment; see `--rates`. */
  readonly rates: FaultRates;
}

type Edits = readonly (readonly [file: string, find: string, replace: string])[];

const bug = (
  world: number | Pick<FoundBug, "seed" | "rates">,
  name: string,
  breaks: string,
  ...edits: Edits
): FoundBug => ({
  ...mutant(name, breaks, ...edits),
  ...(typeof world === "number" ? { seed: world, rates: {} } : world),
});

const many: FaultRates = { "late-commit": 0.12, "lost-answer": 0.08, slow: 0.06, "stale-answer": 0.06 };

const slow: FaultRates = { "late-commit": 0.1, slow: 0.15, "stale-answer": 0.1, error: 0.05 };

export const foundBugs: readonly FoundBug[] = [
  bug(
    367,
    "child-started-with-the-end",
    "The commit that ends a run may create a child, which nothing cancels.",
    [
      "worker/turn/run-end.ts",
      "while (!turn.isOver && turn.writer.hasPendingStarts);",
      "while (turn.isOver && turn.writer.hasPendingStarts);",
    ],
    [
      "worker/commit/run-writer.ts",
      "while (!this.#isClosed && this.hasPendingStarts);",
      "while (this.#isClosed && !this.#isClosed);",
    ],
  ),
  bug(
    626,
    "skip-of-a-running-attempt",
    "An operator's skip hits a step whose next attempt is running, and both results are recorded.",
    ["core/run/decide-operator.ts", "!decision.isExecuting(key) && !endedSteps.has(key)", "!endedSteps.has(key)"],
    ["worker/turn/inbox-processor.ts", "(key) => attempts.isExecuting(key)", "() => false"],
  ),
  bug(
    { seed: 3935, rates: many },
    "result-after-a-command-about-the-step",
    "A command about a step is decided before the result of the step is acknowledged, and both are recorded.",
    ["worker/turn/inbox-processor.ts", "isFromChild(kind) || isAboutStep(kind)", "isFromChild(kind)"],
    [
      "worker/turn/inbox-processor.ts",
      `const isAboutStep = (kind: string) => kind === "skip" || kind === "resume";\n`,
      "",
    ],
  ),
  bug(
    130,
    "paused-by-a-late-commit",
    "A run is paused because a commit that had failed is executed after all.",
    [
      "worker/commit/group-committer.ts",
      `if (result.kind === "conflict" && hasFailed) result =`,
      `if (result.kind === "conflict" && hasFailed && entries.length < 0) result =`,
    ],
    ["worker/session/session.ts", "if (lastSeq !== error.after || isFirst)", "if (lastSeq < error.after)"],
  ),
  bug(
    139,
    "late-claim-forgotten",
    "A claim that had failed is executed after all, and no worker knows that it owns the run.",
    ["worker/claim/claimer.ts", "      this.#reconcileLater();\n", ""],
  ),
  bug(
    { seed: 1266, rates: many },
    "decision-during-a-transaction",
    "Signals that arrive while a transactional step is writing get wrong numbers.",
    [
      "worker/turn/inbox-processor.ts",
      "while (turn.writer.exclusiveLock !== null) await turn.writer.exclusiveLock;",
      "",
    ],
  ),
  bug(
    7318,
    "signal-to-the-run-of-a-dead-worker",
    "A signal to a run whose worker has died makes its task wait for ever.",
    ["core/run/park.ts", "isNoteCurrent ? seenVersionIn(waiting) : null", "seenVersionIn(waiting)"],
  ),
  bug(
    { seed: 2525, rates: many },
    "late-park",
    "A park that had failed is executed when its worker has claimed the run again, and the task is never due.",
    ["worker/commit/group-committer.ts", "this.#options.onUncertainPark(transition.runId);", ";"],
    ["worker/session/session.ts", `if (task?.state === "parked") void this.#lateParks.wake(runId);`, ""],
  ),
  bug(
    { seed: 9911, rates: many },
    "proof-by-one-run",
    "An event of another owner of one run is taken for the proof that a whole batch was written.",
    ["worker/commit/group-committer.ts", "if (at === null) break;", "break;"],
  ),
  bug(
    6499,
    "newer-turn-paused",
    "A run is paused as unwritable although its worker has claimed it again.",
    ["worker/session/session.ts", "if (!opening.isLatest(runId) || this.turns.has(runId)) return;\n", ""],
    ["worker/session/session.ts", "if (lastSeq !== error.after || isFirst)", "if (lastSeq !== error.after)"],
  ),
  bug(
    { seed: 2054, rates: many },
    "waiting-start-begun",
    "A start that is to wait for another run is begun, because an earlier try of it is executed late.",
    [
      "client/start/run-starter.ts",
      "mayBeWritten ? [await this.#launcher.relaunch(again)] : await this.#launcher.launch([again])",
      "await this.#launcher.launch([again])",
    ],
  ),
  bug(2756, "replaced-twice", "A replacement whose answer was lost is made again as another run.", [
    "client/start/key-conflict.ts",
    "return (await this.#wasReplaced(id, state.seq, run).catch(() => false)) || error;",
    "throw error;",
  ]),
  bug(
    { seed: 1421, rates: many },
    "replaced-in-two-runs",
    "The replacement of a run fails and is executed after all, when the start has replaced another run.",
    [
      "client/start/key-conflict.ts",
      "return (await this.#wasReplaced(id, state.seq, run).catch(() => false)) || error;",
      "if (await this.#wasReplaced(id, state.seq, run)) return true;\n        throw error;",
    ],
  ),
  bug(
    { seed: 1987, rates: many },
    "owned-runs-read-too-early",
    "A worker reads which runs it owns before it has told them of a commit that it has found in the log, and forgets those it still owns.",
    [
      "worker/commit/group-committer.ts",
      "if (found === true) this.#receipts.add(this.#options.onUncertain, undefined);",
      "",
    ],
    [
      "worker/commit/group-committer.ts",
      `return { kind: "committed", at, notParked: [], ownedWithMessages: [], refused: [], found: true };`,
      `this.#options.onUncertain();\n    return { kind: "committed", at, notParked: [], ownedWithMessages: [], refused: [], found: true };`,
    ],
  ),
  bug(1763, "earlier-turn-goes-on", "A worker that claims a run again goes on with its earlier turn of it.", [
    "worker/session/session.ts",
    "      this.#endEarlierTurn(task.run.id);\n",
    "",
  ]),
  bug(45, "stopped-while-it-registers", "A worker that is stopped while it registers stays alive in the database.", [
    "worker/worker.ts",
    `    if (this.#phase !== "running") return this.#deregister(fence);\n`,
    "",
  ]),
  bug(
    { seed: 282, rates: many },
    "started-after-its-stop",
    "A worker that is stopped while it starts listens and looks for runs after that.",
    ["worker/worker.ts", "this.#session === null || this.#stopPromise !== null", "this.#session === null"],
  ),
  bug(219, "slots-kept-by-a-client", "A client that ends a run does not give back the slots that the run holds.", [
    "client/command/held-slots.ts",
    "return { next: { ...next, releasesSlots: true }, announce };",
    "return { next, announce };",
  ]),
  bug(
    { seed: 626, rates: slow },
    "two-skips-of-one-step",
    "Two operators skip the same step, and both results are recorded.",
    [
      "core/run/decide-operator.ts",
      `decision.endedSteps.add(key);\n  decision.events.push(\n    newEvent("step.skipped"`,
      `decision.events.push(\n    newEvent("step.skipped"`,
    ],
    [
      "core/run/decide-operator.ts",
      `decision.endedSteps.add(key);\n  decision.events.push(\n    newEvent("step.completed"`,
      `decision.events.push(\n    newEvent("step.completed"`,
    ],
  ),
  bug(
    { seed: 1400, rates: many },
    "orphaned-step",
    "A step that had begun when a late commit released its run is never executed again.",
    ["core/run/lost-step.ts", "op.isAbandoned || (op.job === null && !isDeclared)", "op.isAbandoned"],
  ),
  bug(
    3033,
    "orphaned-step-of-a-parked-run",
    "A parked run whose note does not know of a step that had begun is not continued.",
    [
      "core/run/parking-note.ts",
      "return seq !== undefined && seq < lastSeq;",
      "return seq !== undefined && lastSeq < 0;",
    ],
  ),
  bug(
    15076,
    "late-park-of-a-declared-step",
    "A step that a class declares has begun when a late commit releases its run, and is taken for one whose body waits.",
    [
      "worker/session/read-claimed.ts",
      "findLateReleases(store, wereUnowned ? tasks : emptyList, logs)",
      "findLateReleases(store, emptyList, logs)",
    ],
  ),
  bug(
    7927,
    "message-during-the-quarantine",
    "A message that arrives while a run is about to be quarantined leads to a call of its code.",
    [
      "worker/turn/inbox-processor.ts",
      "    this.#isDeciding = true;\n    try {\n      return await work();",
      "    try {\n      return await work();",
    ],
  ),
  bug(
    16662,
    "cursor-read-for-a-turn-that-is-over",
    "The cursor of a step is read so late that another turn executes the step, and the body of the first begins nevertheless.",
    ["worker/step/checkpoints.ts", "  assertTurnGoesOn(turn);\n", ""],
    ["worker/step/call-body.ts", "  assertTurnGoesOn(turn);\n", ""],
  ),
  bug(
    71158,
    "ended-in-the-middle-of-a-turn",
    "The end of a run fails and is executed after all, when its turn has gone on because of a message.",
    ["worker/commit/group-committer.ts", "this.#uncertainEnds.note(entries);", ""],
  ),
  bug(
    44033,
    "begun-after-a-skip",
    "A step gets its slot while an operator's skip of it is being written, and is executed.",
    ["worker/step/step.ts", " && !this.#turn.inboxProcessor.isEnding(this.#key)", ""],
  ),
  bug(
    45801,
    "gate-of-a-turn-that-is-over",
    "The code of a turn that is over makes a new call, and a timer waits for its recorded calls for ever.",
    ["worker/replay/replay-gate.ts", "if (this.#isClosed) return;", ""],
  ),
  bug(
    95980,
    "deaths-counted-from-before-a-park",
    "Progress before a run was parked counts for the deaths of workers after it, and the run kills one worker more.",
    ["core/run/fold-run.ts", "if (deliveries <= state.delivery) state.lastProductiveDelivery = 1;", ""],
    [
      "worker/turn/crash-loop.ts",
      "state.recoveredSeq > parkedSeq ? state.lastProductiveDelivery : 1",
      "parkedSeq >= 0 ? state.lastProductiveDelivery : 1",
    ],
  ),
  bug(
    2167,
    "slot-of-a-failed-call",
    "A call that asks for the slot of a step fails and is executed after all, and the slot belongs to a step that has ended.",
    ["worker/limits/step-slots.ts", "      this.#unsure.push(...asked);\n", ""],
  ),
  bug(779, "limit-never-stored", "A limit that is first used while another one is being stored is never stored.", [
    "worker/limits/step-slots.ts",
    "const limits = [...this.#unregistered];",
    "const limits = this.#unregistered;",
  ]),
];
