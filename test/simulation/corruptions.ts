/** Worlds that are wrong in one way each, and the invariants that they violate: these, and no others. */
import type { Invariant } from "./evidence.js";
import type { Tampering } from "./tampering.js";

export interface Corruption {
  readonly name: string;
  /** The invariant that must reject it; further ones only if the same fact contradicts them as well. */
  readonly violates: readonly Invariant[];
  /** Returns false if this world has nothing that could be corrupted like this. */
  corrupt(world: Tampering): boolean;
}

const corruption = (
  name: string,
  violates: Invariant | readonly Invariant[],
  corrupt: (world: Tampering) => boolean,
): Corruption => ({ name, violates: [violates].flat(), corrupt });

const isPlainStep = (node: string | null): node is string => node !== null && /^s\d+$/.test(node);

export const corruptions: readonly Corruption[] = [
  // ── Starts ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("an acknowledged start is missing", "I1", (world) => {
    const { evidence } = world;
    const lost = world.loneRuns.find(({ id }) => !evidence.userRows.some(({ run }) => run === id));
    if (lost === undefined) return false;
    evidence.runs = evidence.runs.filter((run) => run !== lost);
    return true;
  }),
  corruption("an acknowledged start exists twice", "I1", (world) => {
    const { evidence } = world;
    const run = world.loneRuns.find(({ id }) => !evidence.userRows.some((row) => row.run === id));
    if (run === undefined) return false;
    const id = `${run.id}-twin`;
    evidence.runs.push({ ...run, id });
    const log = evidence.logs.get(run.id);
    if (log !== undefined) evidence.logs.set(id, log);
    evidence.bodies.push(
      ...evidence.bodies.filter((body) => body.run === run.id).map((body) => ({ ...body, run: id })),
    );
    for (const { transition, entry } of world.writes(run.id)) {
      entry.batch.transitions.push({ ...transition, runId: id });
      if (entry.result.kind === "committed" && entry.result.notParked.includes(run.id)) entry.result.notParked.push(id);
    }
    for (const { batch } of world.entries("commit"))
      batch.starts.push(...batch.starts.filter((start) => start.id === run.id).map((start) => ({ ...start, id })));
    for (const { runIds, deliveries } of world.entries("claimed")) {
      const at = runIds.indexOf(run.id);
      if (at < 0) continue;
      runIds.push(id);
      deliveries.push(deliveries[at] as number);
    }
    return true;
  }),
  corruption("the client was told of another run than the one that has its key", "I1", ({ evidence: { starts } }) => {
    const [first, second] = starts.filter(({ workflow }) => workflow === "program");
    if (first === undefined || second === undefined) return false;
    first.run = second.run;
    return true;
  }),
  corruption("a start is never acknowledged", "I2", ({ evidence }) => evidence.starts.pop() !== undefined),

  // ── Ends ───────────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("a run stands still", "I2", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    const parked = { kind: "park", status: "waiting", waiting: null, startedAt: null, wakeAt: null, wakeInMs: null };
    Object.assign(world.end(run.id).transition, { next: parked });
    Object.assign(run, { status: "waiting", finishedAt: null, output: null });
    return true;
  }),
  corruption("the world does not come to its end", "I2", ({ evidence }) => {
    evidence.stuck = "a run waits for something that no one sends";
    return true;
  }),
  corruption("the task of an ended run is still there", "I19", ({ evidence: { runs, tasks } }) => {
    const [run] = runs;
    if (run === undefined) return false;
    const task = { runId: run.id, route: run.workflow, state: "ready", dueAt: 0, owner: null, deliveries: 0 };
    tasks.push(task as unknown as (typeof tasks)[number]);
    return true;
  }),
  corruption("a message is left over", "I19", ({ evidence: { runs, inbox } }) => {
    const [run] = runs;
    if (run === undefined) return false;
    inbox.set(run.id, [{ id: 1, kind: "signal", data: "{}" } as never]);
    return true;
  }),
  corruption("a run ends a second time", "I9", (world) => {
    for (const run of world.loneRuns) {
      const { entry, transition, finish } = world.end(run.id);
      const later = world.entries("commit").find(({ seq, batch, result }) => {
        return seq > entry.seq && batch.fence === null && result.kind === "committed";
      });
      if (later === undefined) continue;
      const afterSeq = transition.afterSeq + transition.events.length;
      later.batch.transitions.push({ ...transition, afterSeq, events: [], next: finish });
      return true;
    }
    return false;
  }),
  corruption("a completed run becomes a failed one", "I9", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    run.status = "failed";
    return true;
  }),
  corruption("the output of a run changes after its end", "I9", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    run.output = "[]";
    return true;
  }),
  corruption("a run is claimed after it has ended", "I9", (world) =>
    world.loneRuns.some(({ id }) => world.claim(id, world.end(id).entry.seq)),
  ),
  corruption("a run has ended, and no commit ended it", "I16", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    Object.assign(world.end(run.id).transition, { next: { kind: "keep" } });
    return true;
  }),

  // ── Logs ───────────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("an event in the middle of a log is gone", ["I8", "I16"], (world) => {
    const found = world.events("run.started").find(({ run }) => run.status === "completed");
    if (found === undefined) return false;
    world.evidence.logs.set(
      found.run.id,
      world.log(found.run.id).filter(({ seq }) => seq !== found.event.seq),
    );
    return true;
  }),
  corruption("the numbers of a log have a gap", "I8", (world) => {
    const [found] = world.events("run.started").filter(({ run, event }) => world.log(run.id).length === event.seq);
    if (found === undefined) return false;
    found.event.seq += 1;
    return true;
  }),
  corruption("an event has changed after its commit", "I8", (world) => {
    const [found] = world.events("run.started");
    if (found === undefined) return false;
    found.event.data = '{"startedAt":1}';
    return true;
  }),
  corruption("an event has another instant than its commit", "I8", (world) => {
    const [found] = world.events("run.started");
    if (found === undefined) return false;
    found.event.at -= 1;
    return true;
  }),
  corruption("a write was accepted behind an event that the log did not have", "I8", (world) => {
    const write = world.evidence.runs
      .flatMap(({ id }) => world.writes(id))
      .find(({ transition }) => transition.events.length > 0);
    if (write === undefined) return false;
    write.transition.afterSeq += 1;
    return true;
  }),
  corruption("the row of a run counts other events than its log has", "I16", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    run.waiting = String(Number(run.waiting) + 1);
    return true;
  }),
  corruption("a client was told another output than the stored one", "I16", ({ evidence: { results } }) => {
    const [result] = results;
    if (result === undefined) return false;
    result.output = "something else";
    return true;
  }),

  // ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("a step has two results", "I3", (world) => {
    const found = world
      .events("step.completed")
      .find(({ run, event }) => world.loneRuns.includes(run) && isPlainStep(event.node));
    if (found === undefined) return false;
    world.append(found.run, found.event, found.data);
    return true;
  }),
  corruption("a step has a result that no body returned", "I4", (world) => {
    const found = world
      .events("step.completed")
      .find(({ run, event, data }) => data.by === undefined && run.workflow === "order" && event.node === "validate");
    if (found === undefined) return false;
    world.change(found.run.id, found.event.seq, (_, data) => {
      data.output = "validate#99";
    });
    return true;
  }),
  corruption("the result of a step is that of a body that threw", "I4", ({ evidence: { bodies } }) => {
    const body = bodies.find(({ step, end, nth }) => isPlainStep(step) && end === "value" && nth === 1);
    if (body === undefined || bodies.some(({ run, step, nth }) => run === body.run && step === body.step && nth > 1))
      return false;
    body.end = "error";
    return true;
  }),
  corruption("the code has seen a result that its log does not have", "I4", (world) => {
    for (const run of world.loneRuns) {
      const changed = run.output?.replace(/"(s\d+)#\d+"/, '"$1#99"');
      if (changed === undefined || changed === run.output) continue;
      run.output = changed;
      world.end(run.id).finish.output = changed;
      return true;
    }
    return false;
  }),
  corruption("a body began after its result was recorded", "I5", (world) => {
    const { bodies } = world.evidence;
    for (const { run, event } of world.events("step.completed")) {
      if (!isPlainStep(event.node)) continue;
      const { entry, transition } = world.writeOf(run.id, event.seq);
      if (transition.next.kind !== "keep" || entry.isLate) continue;
      const first = bodies.find(({ run: id, step, end }) => id === run.id && step === event.node && end === "value");
      if (first === undefined) continue;
      // Its first execution was interrupted, so that nothing is wrong but the instant of the second.
      world.evidence.deaths.push({ process: first.process, after: entry.seq - 1 });
      const { fence } = entry.batch;
      bodies.push({ ...first, nth: 99, token: null, end: null, fence, begunAfter: entry.seq });
      return true;
    }
    return false;
  }),
  corruption("a body was executed again for no reason", "I6", ({ evidence: { bodies } }) => {
    const body = bodies.find(({ run, step, end }) => {
      return (
        isPlainStep(step) && end === "value" && bodies.filter((b) => b.run === run && b.step === step).length === 1
      );
    });
    if (body === undefined) return false;
    bodies.push({ ...body, nth: 2, token: `${body.step}#2` });
    return true;
  }),
  corruption("an item of a resumable step was done again for no reason", "I6", ({ evidence: { items } }) => {
    const [item] = items;
    if (item === undefined) return false;
    items.push({ ...item });
    return true;
  }),
  corruption("an item of a resumable step was left out", "I4", (world) => {
    const { evidence } = world;
    const sweep = world
      .events("step.completed")
      .find(({ event, data }) => event.node === "sweep" && data.by === undefined);
    const lost = evidence.items.find(({ run }) => run === sweep?.run.id);
    if (lost === undefined) return false;
    evidence.items = evidence.items.filter(({ run, item }) => run !== lost.run || item !== lost.item);
    return true;
  }),
  corruption("a retry has executed a step whose result the run before it has", "I20", (world) => {
    const { bodies } = world.evidence;
    for (const { run, data } of world.events("run.forked")) {
      const before = world.log(data.from);
      const kept = before.find(({ type, node }) => {
        return (
          type === "step.completed" && isPlainStep(node) && !before.some((undo) => undo.node === `${node}#compensate`)
        );
      });
      const body = bodies.find(({ run: id, step, end }) => id === data.from && step === kept?.node && end === "value");
      if (body === undefined) continue;
      // In a process that does not own the run, so that only the fact itself is wrong.
      bodies.push({ ...body, run: run.id, fence: { workerId: "elsewhere", epoch: 1 } });
      return true;
    }
    return false;
  }),
  corruption("a transactional effect has no record", "I13", ({ evidence: { userRows, runs } }) => {
    const [run] = runs;
    if (run === undefined) return false;
    userRows.push({ run: run.id, step: "t99", token: "t99#1" });
    return true;
  }),
  corruption("the record of a transactional step has no effect", "I13", ({ evidence }) => {
    return evidence.userRows.pop() !== undefined;
  }),
  corruption("a transactional effect happened twice", "I13", ({ evidence: { userRows } }) => {
    const [row] = userRows;
    if (row === undefined) return false;
    userRows.push({ ...row });
    return true;
  }),

  // ── Ownership ──────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("a write under an old fence was accepted", "I7", (world) => {
    const written = world
      .entries("commit")
      .find(({ batch, result }) => batch.fence !== null && batch.transitions.length > 0 && result.kind === "committed");
    if (written === undefined || written.batch.fence === null) return false;
    written.batch.fence.epoch -= 1;
    for (const start of written.batch.starts) if (start.due.kind === "owned") return false;
    return true;
  }),
  corruption("a client's write to a run that a worker owns was accepted", "I7", (world) => {
    const written = world
      .entries("commit")
      .find(({ batch, result }) => batch.fence !== null && batch.transitions.length > 0 && result.kind === "committed");
    if (written === undefined || written.batch.starts.length > 0) return false;
    written.batch.fence = null;
    return true;
  }),
  corruption("two workers own a run at the same time", "I7", (world) => {
    for (const { seq, runIds } of world.entries("claimed"))
      for (const run of runIds) {
        if (!world.loneRuns.some(({ id }) => id === run)) continue;
        const next = world.writes(run).find(({ entry }) => entry.seq > seq);
        const between = world.entries("claimed").find((other) => {
          return other.seq > seq && other.seq < (next?.entry.seq ?? 0) && !other.runIds.includes(run);
        });
        if (between === undefined) continue;
        between.runIds.push(run);
        between.deliveries.push(1);
        return true;
      }
    return false;
  }),
  corruption("a worker was registered under an epoch that it had before", "I7", (world) => {
    const seen = new Map<string, number>();
    for (const { fence } of world.entries("registered")) {
      const before = seen.get(fence.workerId);
      if (before !== undefined) {
        fence.epoch = before;
        return true;
      }
      seen.set(fence.workerId, fence.epoch);
    }
    return false;
  }),
  corruption("a claim under an old fence was accepted", "I7", (world) => {
    const epochs = new Map<string, number>();
    for (const entry of world.evidence.journal) {
      if (entry.kind === "registered") epochs.set(entry.fence.workerId, entry.fence.epoch);
      const run = entry.kind === "claimed" ? world.loneRuns.find(({ id }) => entry.runIds.includes(id)) : undefined;
      if (run === undefined || entry.kind !== "claimed" || entry.runIds.length > 1) continue;
      const writes = world
        .writes(run.id)
        .filter(({ entry: { seq, batch } }) => seq > entry.seq && batch.fence !== null);
      // All that follows is under the same old fence, so it is only the claim that should not have been.
      if (writes.length !== 1 || (writes[0]?.entry.batch.transitions.length ?? 0) > 1) continue;
      if (writes.some(({ entry: { batch } }) => batch.starts.some(({ due }) => due.kind === "owned"))) continue;
      entry.fence.epoch -= 1;
      for (const { entry: written } of writes) (written.batch.fence as { epoch: number }).epoch -= 1;
      return true;
    }
    return false;
  }),

  // ── Signals ────────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("an acknowledged signal is not in the log", "I10", ({ evidence: { signals } }) => {
    const [signal] = signals;
    if (signal === undefined) return false;
    signals.push({ ...signal, key: "lost" });
    return true;
  }),
  corruption("a signal was recorded twice", "I10", (world) => {
    const found = world
      .events("signal.received")
      .find(({ run, data }) => data.key !== undefined && ["completed", "failed"].includes(run.status));
    if (found === undefined) return false;
    world.append(found.run, found.event, found.data);
    return true;
  }),
  corruption("a signal was consumed twice", "I10", (world) => {
    const [found] = world.events("wait.completed").filter(({ data }) => data.signals.length > 0);
    if (found === undefined) return false;
    world.append(found.run, found.event, found.data);
    return true;
  }),
  corruption("signals of one name were consumed in the wrong order", "I10", (world) => {
    const consumed = world.events("wait.completed").filter(({ data }) => data.signals.length === 1);
    for (const { run, event, data } of consumed) {
      const log = world.log(run.id);
      if (log.some(({ type }) => type === "wait.withdrawn" || type === "run.forked")) continue;
      const nameOf = (signal: number) => JSON.parse(log[signal - 1]?.data ?? "{}").name;
      const isLater = (other: (typeof consumed)[number]) => other.run === run && other.event.seq > event.seq;
      if (!consumed.some((other) => isLater(other) && nameOf(other.data.signals[0]) === nameOf(data.signals[0])))
        continue;
      world.change(run.id, event.seq, (_, changed) => void (changed.signals = []));
      world.append(run, event, data);
      return true;
    }
    return false;
  }),
  corruption("a wait consumed a signal, and an earlier one of the same name is left over", "I10", (world) => {
    const completed = world.events("wait.completed").filter(({ data }) => data.signals.length === 1);
    for (const { run, event, data } of completed) {
      const log = world.log(run.id);
      if (log.some(({ type }) => type === "wait.withdrawn" || type === "run.forked")) continue;
      const nameOf = (signal: number) => JSON.parse(log[signal - 1]?.data ?? "{}").name;
      const [signal] = data.signals;
      const later = log.find(
        ({ type, seq }) =>
          type === "signal.received" && seq > signal && seq < event.seq && nameOf(seq) === nameOf(signal),
      );
      const uses = (seq: number) => world.events(event.type).filter((other) => other.data.signals.includes(seq));
      if (later === undefined || uses(later.seq).some((other) => other.run === run)) continue;
      world.change(run.id, event.seq, (_, changed) => void (changed.signals = [later.seq]));
      return true;
    }
    return false;
  }),
  corruption("a wait consumed a signal that had not arrived", "I10", (world) => {
    const [found] = world.events("wait.completed").filter(({ data }) => data.signals.length === 1);
    if (found === undefined) return false;
    world.change(found.run.id, found.event.seq, (_, data) => void (data.signals = [9_999]));
    return true;
  }),
  corruption("a signal had arrived, and the wait for it timed out all the same", "I10", (world) => {
    const found = world.events("wait.timed_out").find(({ run, event }) => {
      const start = world.log(run.id).find(({ type, node }) => type === "wait.started" && node === event.node);
      return start !== undefined && JSON.parse(start.data ?? "{}").names.length === 1;
    });
    if (found === undefined) return false;
    const { run, event } = found;
    const start = world.log(run.id).find(({ type, node }) => type === "wait.started" && node === event.node);
    const { names } = JSON.parse(start?.data ?? "{}");
    // Any event before it that no other check reads becomes the arrival of the signal.
    const before = world.log(run.id).find(({ type, seq }) => type === "run.started" && seq < event.seq);
    if (before === undefined) return false;
    world.change(run.id, before.seq, (changed, data) => {
      changed.type = "signal.received";
      Object.assign(data, { name: names[0], key: "ignored" });
    });
    return true;
  }),
  corruption("a signal was recorded before one that was acknowledged earlier", "I10", (world) => {
    const received = world.events("signal.received").filter(({ data }) => String(data.key).startsWith("s"));
    for (const { run, event, data } of received) {
      const later = received.find((other) => other.run === run && other.event.seq > event.seq);
      const signals = world.evidence.signals.filter((signal) => signal.run === run.id);
      const a = signals.find(({ key }) => key === later?.data.key);
      const b = signals.find(({ key }) => key === data.key);
      if (a === undefined || b === undefined) continue;
      Object.assign(a, { sentAfter: 1, acknowledgedAfter: 2 });
      Object.assign(b, { sentAfter: 3, acknowledgedAfter: 4 });
      return true;
    }
    return false;
  }),
  corruption("the code received one signal twice", "I10", (world) => {
    for (const run of world.loneRuns) {
      const output = JSON.parse(run.output ?? "null");
      if (!Array.isArray(output)) continue;
      const given = output.find((seen) => Array.isArray(seen) && seen[0] === "signal" && typeof seen[1] === "string");
      if (given === undefined) continue;
      run.output = JSON.stringify([...output, given]);
      world.end(run.id).finish.output = run.output;
      return true;
    }
    return false;
  }),

  // ── Timers ─────────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("a timer fired early", "I11", (world) => {
    for (const { run, event, data } of world.events("timer.started")) {
      if (!world.log(run.id).some(({ type, node }) => type === "timer.fired" && node === event.node)) continue;
      if (data.ms === undefined) continue;
      world.change(run.id, event.seq, (_, changed) => void (changed.ms += 3_600_000));
      return true;
    }
    return false;
  }),
  corruption("a timer fired twice", "I11", (world) => {
    const [found] = world.events("timer.fired");
    if (found === undefined) return false;
    world.append(found.run, found.event);
    return true;
  }),
  corruption("a wait timed out early", "I11", (world) => {
    const [found] = world.events("wait.timed_out");
    if (found === undefined) return false;
    const { run, event } = found;
    const start = world.log(run.id).find(({ type, node }) => type === "wait.started" && node === event.node);
    world.change(run.id, start?.seq ?? 0, (_, data) => void (data.timeoutMs += 3_600_000));
    return true;
  }),
  corruption("a retry began early", "I11", (world) => {
    for (const { run, event, data } of world.events("step.failed")) {
      if (data.retryMs === undefined || !isPlainStep(event.node)) continue;
      if (world.events("run.resumed").some((resumed) => resumed.run === run)) continue;
      const { bodies } = world.evidence;
      const next = bodies.find(({ run: id, step, attempt }) => {
        return id === run.id && step === event.node && attempt === (event.attempt ?? 0) + 1;
      });
      if (next === undefined) continue;
      next.begunAt = event.at + data.retryMs - 1;
      return true;
    }
    return false;
  }),

  // ── Children ───────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("a child has no parent", "I12", ({ evidence: { runs } }) => {
    const child = runs.find(({ parentId, parentIndex, parentAttempt }) => {
      return parentId !== null && parentIndex === null && parentAttempt === null;
    });
    if (child === undefined) return false;
    child.parentId = "a run that does not exist";
    return true;
  }),
  corruption("a parent waits for a child that does not exist", "I12", (world) => {
    const [found] = world.events("child.started").filter(({ run }) => world.log(run.id).length > 0);
    const run = world.loneRuns[0];
    if (found === undefined || run === undefined) return false;
    world.append(run, { type: "child.started", node: "c99" }, { ...found.data, runId: "a run that does not exist" });
    return true;
  }),
  corruption("a child outlives its parent", ["I2", "I12"], (world) => {
    const child = world.evidence.runs.find(({ parentAttempt }) => parentAttempt !== null);
    if (child === undefined) return false;
    const parked = { kind: "park", status: "waiting", waiting: null, startedAt: null, wakeAt: null, wakeInMs: null };
    Object.assign(world.end(child.id).transition, { next: parked });
    Object.assign(child, { status: "waiting", finishedAt: null, output: null });
    return true;
  }),
  corruption("a child completed after its parent had ended", "I12", (world) => {
    const child = world.evidence.runs.find(({ id, parentId, parentAttempt, status }) => {
      return parentId !== null && parentAttempt !== null && status === "completed" && world.writes(id).length > 0;
    });
    if (child === undefined || child.parentId === null) return false;
    const { entry, finish } = world.end(child.id);
    const last = world.entries("commit").findLast(({ result, seq }) => result.kind === "committed" && seq > entry.seq);
    if (last === undefined || last.seq <= world.end(child.parentId).entry.seq) return false;
    // Its end moves behind that of its parent, into a commit of the same worker.
    if (last.batch.fence?.workerId !== entry.batch.fence?.workerId) return false;
    const { transition } = world.end(child.id);
    entry.batch.transitions = entry.batch.transitions.filter((other) => other !== transition);
    last.batch.transitions.push(transition);
    for (const [index, event] of world.log(child.id).entries())
      if (index >= transition.afterSeq && last.result.kind === "committed") event.at = last.result.at;
    return finish.status === "completed";
  }),
  corruption("the parent has another output of its child than the child", "I12", (world) => {
    const found = world.events("child.completed").find(({ event }) => /^c\d+$/.test(event.node ?? ""));
    if (found === undefined) return false;
    world.change(found.run.id, found.event.seq, (_, data) => void (data.output = "something else"));
    return true;
  }),
  corruption("the parent has a completed child as failed", "I12", (world) => {
    const found = world.events("child.completed").find(({ event }) => /^c\d+$/.test(event.node ?? ""));
    if (found === undefined) return false;
    world.change(found.run.id, found.event.seq, (event) => void (event.type = "child.failed"));
    return true;
  }),
  corruption("the parent has two ends of a child", "I12", (world) => {
    const found = world.events("child.completed").find(({ event }) => /^c\d+$/.test(event.node ?? ""));
    if (found === undefined) return false;
    world.append(found.run, found.event, found.data);
    return true;
  }),
  corruption("a map has settled one of its children twice", "I12", (world) => {
    const [found] = world.events("map.settled");
    if (found === undefined) return false;
    world.append(found.run, found.event, found.data);
    return true;
  }),

  // ── Limits, quarantine, leaks ──────────────────────────────────────────────────────────────────────────────────────
  corruption("an innocent run was quarantined", "I15", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    world.append(
      run,
      { type: "run.paused" },
      { reason: "crash loop", error: { name: "QuarantineError", message: "" } },
    );
    return true;
  }),
  corruption("a run was executed once more than the limit of its deliveries allows", "I15", (world) => {
    const { evidence } = world;
    const fruitless = new Map<string, number>();
    for (const entry of evidence.journal) {
      if (entry.kind === "claimed") for (const run of entry.runIds) fruitless.set(run, (fruitless.get(run) ?? 0) + 1);
      if (entry.kind === "commit" && entry.result.kind === "committed")
        for (const { runId, events, next } of entry.batch.transitions)
          if (next.kind !== "keep" || events.some(({ type }) => type !== "run.recovered")) fruitless.delete(runId);
      const body = evidence.bodies.find(
        ({ begunAfter, run }) => begunAfter === entry.seq && (fruitless.get(run) ?? 0) > 1,
      );
      if (body === undefined) continue;
      evidence.maxDeliveries = (fruitless.get(body.run) as number) - 2;
      return true;
    }
    return false;
  }),
  corruption("a run was paused for no reason of its own", "I25", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined) return false;
    world.append(run, { type: "run.paused" }, { reason: "another run of its worker has failed" });
    return true;
  }),
  corruption("code changed nowhere, and a run was paused because of it", "I25", (world) => {
    const [run] = world.loneRuns;
    if (run === undefined || world.evidence.hasTwoReleases) return false;
    const error = { name: "NonDeterminismError", message: "" };
    world.append(run, { type: "run.paused" }, { reason: "the code does not fit", error });
    return true;
  }),
  corruption("a rejection was not handled", "I25", ({ evidence: { unhandled } }) => {
    unhandled.push("Error: no code waits for this");
    return true;
  }),
  corruption("more runs were executed at a time than a limit allows", "I14", (world) => {
    const limited = new Set(world.evidence.runs.filter(({ workflow }) => workflow === "limited").map(({ id }) => id));
    if (!world.entries("claimed").some(({ runIds }) => runIds.some((id) => limited.has(id)))) return false;
    for (const { limits } of world.entries("limits"))
      for (const limit of limits) if (limit.name === "slots") Object.assign(limit, { concurrency: 0, override: null });
    return true;
  }),
  corruption("a lane has more slots in use than its limit", "I14", (world) => {
    const entry = world
      .entries("slots")
      .find(({ slots }) => slots.some(({ isWaiting, node }) => !isWaiting && node === ""));
    const slot = entry?.slots.find(({ isWaiting, node }) => !isWaiting && node === "");
    if (entry === undefined || slot === undefined) return false;
    for (let more = 0; more < 50; more += 1) entry.slots.push({ ...slot, runId: `${slot.runId}-${more}` });
    return true;
  }),
  corruption("the runs of a lane began faster than its rate allows", "I23", (world) => {
    const { journal, runs } = world.evidence;
    const paced = new Set(runs.filter(({ workflow }) => workflow === "paced").map(({ id }) => id));
    const claims = world.entries("claimed").filter(({ runIds }) => runIds.some((id) => paced.has(id)));
    if (claims.length < 5) return false;
    for (const entry of journal) if (entry.kind === "claimed") entry.at = claims[0]?.at ?? 0;
    return true;
  }),
  corruption("a start that was gathered is in no run", "I1", ({ evidence: { tokenStarts } }) => {
    const start = tokenStarts.find(({ workflow }) => workflow === "lists");
    if (start === undefined) return false;
    tokenStarts.push({ ...start, token: "lost" });
    return true;
  }),
  corruption("a run that has expired had begun", "I11", ({ evidence: { runs, bodies } }) => {
    const run = runs.find(({ status, error }) => status === "canceled" && error?.includes('"EXPIRED"') === true);
    const [body] = bodies;
    if (run === undefined || body === undefined) return false;
    bodies.push({ ...body, run: run.id });
    return true;
  }),
  corruption("a slot was not given back", "I14", ({ evidence: { runs, slots } }) => {
    const [run] = runs;
    if (run === undefined) return false;
    slots.push({ runId: run.id, node: "", lane: "slots", isWaiting: false, owner: null, epoch: null, at: 0 });
    return true;
  }),
  corruption("a transaction was left open", "I17", ({ evidence: { leftOpen } }) => {
    leftOpen.push({ process: "w0.1", transactions: 1, listeners: 0, timers: 0 });
    return true;
  }),
  corruption("a timer was left behind", "I17", ({ evidence: { leftOpen } }) => {
    leftOpen.push({ process: "w0.1", transactions: 0, listeners: 0, timers: 1 });
    return true;
  }),
  corruption("a worker has stopped and is marked live", "I17", ({ evidence: { workers, deaths } }) => {
    const [worker] = workers;
    if (worker === undefined || deaths.length > 0) return false;
    worker.live = true;
    return true;
  }),

  // ── Schedules ──────────────────────────────────────────────────────────────────────────────────────────────────────
  corruption("an acknowledged schedule is missing", "I24", ({ evidence: { puts } }) => {
    puts.push("a schedule that does not exist");
    return true;
  }),
  corruption("an occurrence was fired twice", "I24", ({ evidence: { occurrences } }) => {
    const [occurrence] = occurrences;
    if (occurrence === undefined) return false;
    occurrences.push({ ...occurrence });
    return true;
  }),
  corruption("an occurrence is missing", "I24", ({ evidence }) => {
    const last = Math.max(...evidence.occurrences.map(({ scheduledFor }) => scheduledFor));
    const lost = evidence.occurrences.find(({ outcome, scheduledFor }) => outcome !== "ran" && scheduledFor < last);
    if (lost === undefined) return false;
    evidence.occurrences = evidence.occurrences.filter((occurrence) => occurrence !== lost);
    return true;
  }),
  corruption("an occurrence ran, and its run does not exist", "I24", ({ evidence: { occurrences } }) => {
    const ran = occurrences.find(({ outcome }) => outcome === "ran");
    if (ran === undefined) return false;
    ran.id = "a run that does not exist";
    return true;
  }),
  corruption("a schedule fired at an instant that it does not have", "I24", ({ evidence: { occurrences } }) => {
    const [occurrence] = occurrences;
    if (occurrence === undefined) return false;
    occurrence.scheduledFor += 1;
    return true;
  }),
];
