/** The checker of limits rejects histories and tables that were damaged on purpose. */
import { expect, test } from "vitest";
import { judgeLimits, type LimitEvidence } from "./limit-checker.js";
import type { HistoryEntry, HistoryKind } from "./limit-history.js";
import { lanesOfRun } from "./limit-rules.js";

type Change = Partial<HistoryEntry> & { readonly id: string };

/** Each entry is a millisecond later than the one before. */
const sequence = (entries: readonly (readonly [what: HistoryKind, values: Change])[]): readonly HistoryEntry[] =>
  entries.map(([what, values], index) => ({
    ...{ seq: index + 1, at: 1_000 + index, lane: null, owner: null, epoch: null, state: null, route: null },
    ...{ oldRoute: null, value: null, inUse: null, detail: null },
    what,
    ...values,
  }));

const lane = "tenant\ta1";
const route = "plain\t\tclass";
const otherRoute = "plain\t\tother";
const w = { owner: "w", epoch: 1 };
const readAt = 1_000;

const sorted = (id: string, to = route) => ["task_changed", { id, state: 1, route: to, oldRoute: "plain" }] as const;
const admitted = (id: string, from = route, owner = w) =>
  [
    ["task_changed", { id, state: 2, route: "plain", oldRoute: from, ...owner }],
    ["slot_taken", { id, lane, value: readAt, ...owner }],
  ] as const;
const ended = (id: string, owner = w) =>
  [
    ["slot_freed", { id, lane, value: readAt, ...owner }],
    ["task_removed", { id, state: 2, route: "plain", ...owner }],
  ] as const;

/** One slot; the runs a, b and c take it in turns. */
const entries = [
  ["limit_set", { id: "tenant", value: 1 }],
  ["worker_set", { id: "w", epoch: 1, state: 1, value: 77 }],
  ["class_added", { id: route, detail: JSON.stringify([lane]) }],
  ["class_added", { id: otherRoute, detail: JSON.stringify([lane]) }],
  ...["a", "b", "c"].map((id) => ["task_added", { id, state: 1, route: "plain" }] as const),
  ...[sorted("a"), sorted("b"), sorted("c", otherRoute)],
  ...admitted("a"),
  ...ended("a"),
  ...admitted("c", otherRoute),
  ...ended("c"),
  ...admitted("b"),
  ...ended("b"),
  ...[["class_removed", { id: route }] as const, ["class_removed", { id: otherRoute }] as const],
] as const satisfies readonly (readonly [HistoryKind, Change])[];
const history = sequence(entries);

const indexOf = (what: HistoryKind, id: string) =>
  entries.findIndex(([kind, entry]) => kind === what && entry.id === id);
const body = (run: string, at: number) => ({ run, body: "one", pid: 77, at });
const beginOf = (id: string) => (history[indexOf("slot_taken", id)] as HistoryEntry).at;

const sound: LimitEvidence = {
  history,
  runs: ["a", "b", "c"].map((id) => ({ id, workflow: "plain", input: '{"tenant":"a1"}', status: "completed" })),
  ...{ tasks: [], slots: [], classes: [] },
  bodies: ["a", "b", "c"].map((id) => body(id, beginOf(id))),
  started: ["a", "b", "c"],
  lanesOfRun,
};

test("a sound history has no violation", () => {
  expect(judgeLimits(sound)).toEqual({
    violations: [],
    ...{ admissions: 3, filledLanes: 3, longestWait: 1, mostPerOther: 1 },
  });
});

type Entries = readonly (readonly [HistoryKind, Change])[];
const without = (what: HistoryKind, id: string): Entries => entries.filter((_, index) => index !== indexOf(what, id));
const changed = (what: HistoryKind, id: string, change: Partial<HistoryEntry>): Entries =>
  entries.map((entry, index) => (index === indexOf(what, id) ? [entry[0], { ...entry[1], ...change }] : entry));
const moved = (id: string, from: readonly HistoryKind[], after: readonly [HistoryKind, string]): Entries => {
  const isMoved = ([what, entry]: readonly [HistoryKind, Change]) => entry.id === id && from.includes(what);
  return entries
    .filter((entry) => !isMoved(entry))
    .flatMap((entry) =>
      entry[0] === after[0] && entry[1].id === after[1] ? [entry, ...entries.filter(isMoved)] : [entry],
    );
};
const inserted = (index: number, ...more: Entries): Entries => [
  ...entries.slice(0, index),
  ...more,
  ...entries.slice(index),
];
const takesSlotOfC = indexOf("slot_taken", "c");
const lowered = ["limit_set", { id: "tenant", value: 0 }] as const;
const seen = ["limit_seen", { id: "tenant", value: 0, at: -100_000 }] as const;

const damagedHistories: readonly (readonly [name: string, history: Entries, text: string])[] = [
  ["a lane has two holders and one slot", moved("a", ["slot_freed", "task_removed"], ["slot_taken", "c"]), "number 2"],
  [
    "an admission begins under a lowered limit",
    inserted(takesSlotOfC, ["limit_set", { ...lowered[1], at: -200_000 }], seen),
    "number 1",
  ],
  ["a transaction has seen more slots than there are", changed("slot_taken", "c", { inUse: 2 }), "number 2"],
  ["a limit was never registered", without("limit_set", "tenant"), "0 slots"],
  [
    "a run is owned without its slot",
    without("slot_taken", "b").filter(([what, { id }]) => what !== "slot_freed" || id !== "b"),
    "has no slot",
  ],
  ["a slot is never freed", without("slot_freed", "b"), "At the end"],
  ["a slot belongs to another worker than the run", changed("slot_taken", "b", { owner: "v" }), "run b is owned by w"],
  ["a slot belongs to an older epoch", changed("slot_taken", "b", { epoch: 0 }), "run b is owned by w"],
  ["a run has a slot of another lane", changed("slot_taken", "b", { lane: "tenant\tb1" }), "tenant:b1"],
  [
    "a parked run keeps its slot until it goes on",
    inserted(
      indexOf("slot_freed", "b"),
      ["task_changed", { id: "b", state: 0, route: "plain", oldRoute: "plain" }],
      ["task_changed", { id: "b", state: 2, route: "plain", oldRoute: "plain", ...w }],
    ),
    "owned by no worker",
  ],
  [
    "a run goes from one worker to another with the slot of the first",
    inserted(
      indexOf("slot_freed", "b"),
      ["task_changed", { id: "b", state: 2, route: "plain", oldRoute: "plain", owner: "v", epoch: 1 }],
      ["task_changed", { id: "b", state: 2, route: "plain", oldRoute: "plain", owner: "u", epoch: 1 }],
    ),
    "owned by v",
  ],
  ["a class starves", starved(), "starves"],
];

/** While b waits and its lane has room, another class gets thousands of turns. */
function starved(): Entries {
  const free = "plain\t\tfree";
  const turn: Entries = [
    ["task_changed", { id: "d", state: 2, route: "plain", oldRoute: free, ...w }],
    ["task_changed", { id: "d", state: 1, route: free, oldRoute: "plain" }],
  ];
  return inserted(
    indexOf("task_removed", "c") + 1,
    ["class_added", { id: free, detail: "[]" }],
    ...Array(2_000).fill(turn).flat(),
  );
}

test.each(damagedHistories)("it is found that %s", (_, damaged, text) => {
  const { violations } = judgeLimits({ ...sound, history: sequence(damaged) });
  expect(violations.filter((violation) => violation.includes(text))).not.toEqual([]);
});

const damagedEnds: readonly (readonly [name: string, damage: Partial<LimitEvidence>, text: string])[] = [
  ["a run has not ended", { tasks: [{ run_id: "b" }] }, "Run b has not ended"],
  ["a slot is left behind", { slots: [{ run_id: "b", lane }] }, "left its slot"],
  ["the history lacks a slot of the table", { slots: [{ run_id: "x", lane }] }, "0 slots at its end"],
  ["a class is left over", { classes: [{ id: route }] }, "left over"],
  ["a run is lost", { started: ["a", "b", "c", "d"] }, "Run d is lost"],
  ["a run waits for ever", { runs: sound.runs.map((run) => ({ ...run, status: "waiting" })) }, "Run a is waiting"],
  ["a body begins before its run has a slot", { bodies: [...sound.bodies, body("b", beginOf("a"))] }, "did not own it"],
  [
    "a body begins after its run has given its slot back",
    { bodies: [...sound.bodies, body("a", beginOf("b"))] },
    "did not own it",
  ],
  [
    "a body begins in another process",
    { bodies: [...sound.bodies, { ...body("a", beginOf("a")), pid: 78 }] },
    "Process 78",
  ],
  ["a completed run was never executed", { bodies: sound.bodies.slice(1) }, "Run a (plain) is completed"],
];

test.each(damagedEnds)("it is found that %s", (_, damage, text) => {
  const { violations } = judgeLimits({ ...sound, ...damage });
  expect(violations.filter((violation) => violation.includes(text))).not.toEqual([]);
});

test("a worker that counts as dead may begin a body, and an admission may have read a limit before it was lowered", () => {
  const reaped = inserted(indexOf("slot_freed", "b"), ["worker_set", { id: "w", epoch: 1, state: 0, value: 77 }]);
  const bodies = [...sound.bodies, body("b", 9_000)];
  expect(judgeLimits({ ...sound, history: sequence(reaped), bodies }).violations).toEqual([]);
  const justLowered = inserted(
    takesSlotOfC,
    ["limit_set", { id: "tenant", value: 0 }],
    ["limit_seen", { id: "tenant", value: 0 }],
  );
  expect(judgeLimits({ ...sound, history: sequence(justLowered) }).violations).toEqual([]);
});
