/** The checker of limits rejects histories and tables that were damaged on purpose. */
import { expect, test } from "vitest";
import { judgeLimits, type LimitEvidence } from "./limit-checker.js";
import type { HistoryEntry, HistoryKind } from "./limit-history.js";
import { laneOfBody, lanesOfRun } from "./limit-rules.js";

type Change = Partial<HistoryEntry> & { readonly id: string };

/** Each entry is a millisecond later than the one before. */
const sequence = (entries: readonly (readonly [what: HistoryKind, values: Change])[]): readonly HistoryEntry[] =>
  entries.map(([what, values], index) => ({
    ...{ seq: index + 1, at: 1_000 + index, lane: null, owner: null, epoch: null, state: null, route: null },
    ...{ oldRoute: null, value: null, inUse: null, detail: null, node: "", waits: 0, units: 1, override: null },
    what,
    ...values,
  }));

const limitOf = (id: string, concurrency: number | null, rate: object | null = null) =>
  ["limit_set", { id, detail: JSON.stringify({ concurrency, rate }) }] as const;
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
  limitOf("tenant", 1),
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
  laneOfBody,
};

test("a sound history has no violation", () => {
  expect(judgeLimits(sound)).toEqual({
    violations: [],
    ...{ admissions: 3, filledLanes: 3, longestWait: 1, mostPerOther: 1, fullestWindow: 0 },
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
const lowered = limitOf("tenant", 0);
const seen = ["limit_seen", { ...lowered[1], at: -100_000 }] as const;

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

/** A run that holds a slot from its first execution to its end, parks and goes on; and one that follows it. */
const mutex = "mutex\ta1";
const customerRoute = "customer\t\tclass";
const owned = (id: string) =>
  ["task_changed", { id, state: 2, route: "customer", oldRoute: customerRoute, ...w }] as const;
const open = (id: string) => [
  owned(id),
  ["slot_taken", { id, lane: mutex, value: readAt }] as const,
  ["slot_taken", { id, lane, value: readAt, ...w }] as const,
];
const finished = (id: string) => [
  ["slot_freed", { id, lane: mutex }] as const,
  ["slot_freed", { id, lane }] as const,
  ["task_removed", { id, state: 2, route: "customer", ...w }] as const,
];
const parked = [
  ["slot_freed", { id: "a", lane }] as const,
  ["task_changed", { id: "a", state: 0, route: "customer", oldRoute: "customer" }] as const,
];
const goesOn = [owned("a"), ["slot_taken", { id: "a", lane, value: readAt, ...w }] as const];
const beginning = [
  ...[limitOf("tenant", 2), limitOf("mutex", 1), ["worker_set", { id: "w", epoch: 1, state: 1, value: 77 }] as const],
  ...["a", "b"].map((id) => ["task_added", { id, state: 1, route: "customer" }] as const),
];
const heldOpen = (history: Entries): LimitEvidence => ({
  ...sound,
  history: sequence(history),
  runs: ["a", "b"].map((id) => ({ id, workflow: "customer", input: '{"tenant":"a1"}', status: "canceled" })),
  ...{ bodies: [], started: [] },
});

test("a slot may be held until a run ends", () => {
  const whole = [...beginning, ...open("a"), ...parked, ...goesOn, ...finished("a"), ...open("b"), ...finished("b")];
  expect(judgeLimits(heldOpen(whole)).violations).toEqual([]);
});

const damagedOpen: readonly (readonly [name: string, history: Entries, text: string])[] = [
  [
    "two runs hold it",
    [...beginning, ...open("a"), ...parked, ...open("b"), ...goesOn, ...finished("a"), ...finished("b")],
    "number 2",
  ],
  [
    "a run has given it back too early",
    [...beginning, ...open("a"), finished("a")[0] as (typeof parked)[0], ...parked, ...goesOn, ...finished("a")],
    "run a is owned by no worker and has no slot",
  ],
  [
    "a run that has ended still holds it",
    [...beginning, ...open("a"), ...parked, ["task_removed", { id: "a", state: 0, route: "customer" }]],
    "run a has ended and has mutex:a1",
  ],
];

test.each(damagedOpen)("it is found of a slot that is held until the end that %s", (_, damaged, text) => {
  expect(judgeLimits(heldOpen(damaged)).violations.filter((violation) => violation.includes(text))).not.toEqual([]);
});

/** Of a slot of a step: it waits, gets the slot, and gives it back. */
const stepSlot = (node: string) => ({ id: "a", lane: "api\t", node, ...w });
const waits = (node: string) => ["slot_taken", { ...stepSlot(node), waits: 1 }] as const;
const granted = (node: string, at: number, units = 1) =>
  ["slot_changed", { ...stepSlot(node), value: at, units }] as const;
const released = (node: string) => ["slot_freed", stepSlot(node)] as const;
const withSteps = (limit: Entries[number], ...steps: Entries): Entries =>
  inserted(indexOf("slot_freed", "a"), limit, ...steps);
const pace = limitOf("api", null, { limit: 2, perMs: 100, burst: 1 });

/** The further entries move the others to later instants. */
const withoutBodies: LimitEvidence = {
  ...sound,
  runs: sound.runs.map((run) => ({ ...run, status: "failed" })),
  bodies: [],
};

test("steps may wait for slots, and begin at the pace of a rate", () => {
  const steps = withSteps(
    limitOf("api", 1),
    waits("x"),
    waits("y"),
    granted("x", 1_000),
    released("x"),
    granted("y", 1_010),
    released("y"),
  );
  expect(judgeLimits({ ...withoutBodies, history: sequence(steps) }).violations).toEqual([]);
  const nodes = ["1", "2", "3", "4", "5"].flatMap((node, index) => [
    waits(node),
    granted(node, index < 4 ? 1_000 : 1_100),
    released(node),
  ]);
  const { violations, fullestWindow } = judgeLimits({ ...withoutBodies, history: sequence(withSteps(pace, ...nodes)) });
  expect(violations).toEqual([]);
  expect(fullestWindow).toBe(1);
});

const damagedSteps: readonly (readonly [name: string, history: Entries, text: string])[] = [
  [
    "two hold one slot",
    withSteps(
      limitOf("api", 1),
      waits("x"),
      waits("y"),
      granted("x", 1_000),
      granted("y", 1_000),
      released("x"),
      released("y"),
    ),
    "number 2",
  ],
  [
    "one outlives the execution of its run",
    withSteps(limitOf("api", 1), waits("x"), granted("x", 1_000)),
    "1 slots at its end",
  ],
  [
    "one belongs to another worker",
    withSteps(limitOf("api", 1), ["slot_taken", { ...stepSlot("x"), owner: "v" }]),
    "counts as dead",
  ],
  [
    "a rate is exceeded",
    withSteps(pace, ...["1", "2", "3", "4", "5"].flatMap((node) => [granted(node, 1_099), released(node)])),
    "5 units began",
  ],
  [
    "a rate is exceeded by units",
    withSteps(pace, ...[granted("1", 1_000, 4), released("1"), granted("2", 1_099, 4), released("2")]),
    "8 units began",
  ],
];

test.each(damagedSteps)("it is found of slots of steps that %s", (_, damaged, text) => {
  const { violations } = judgeLimits({ ...withoutBodies, history: sequence(damaged) });
  expect(violations.filter((violation) => violation.includes(text))).not.toEqual([]);
});

test("a body of a step with a limit begins only while the step has its slot", () => {
  const steps = withSteps(limitOf("api", 1), waits("1 call"), granted("1 call", 1_000), released("1 call"));
  const history = sequence(steps);
  const at = (what: HistoryKind) => history.find((entry) => entry.what === what && entry.node === "1 call")?.at ?? 0;
  const judge = (beganAt: number) =>
    judgeLimits({
      ...withoutBodies,
      history,
      bodies: [{ ...body("a", beganAt), body: "call" }],
      laneOfBody: (_workflow, name) => (name === "call" ? "api\t" : null),
    }).violations;
  expect(judge(at("slot_changed"))).toEqual([]);
  for (const beganAt of [at("slot_changed") - 3, at("slot_freed") + 3])
    expect(judge(beganAt)).toContainEqual(expect.stringContaining("without a slot of api"));
});

test("an override counts until it ends", () => {
  const { detail } = limitOf("tenant", 0)[1];
  const overridden = (until: number | null) =>
    sequence([
      ["limit_set", { id: "tenant", detail, override: JSON.stringify({ concurrency: 1, until }) }],
      ...entries.slice(1),
    ]);
  for (const until of [null, readAt + 1])
    expect(judgeLimits({ ...sound, history: overridden(until) }).violations).toEqual([]);
  expect(judgeLimits({ ...sound, history: overridden(readAt) }).violations).toContainEqual(
    expect.stringContaining("0 slots"),
  );
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
  const justLowered = inserted(takesSlotOfC, lowered, ["limit_seen", lowered[1]]);
  expect(judgeLimits({ ...sound, history: sequence(justLowered) }).violations).toEqual([]);
});
