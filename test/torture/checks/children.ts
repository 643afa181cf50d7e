/** I12: parents and children agree, and there are no orphans. */
import type { Evidence, Report } from "../evidence.js";
import type { LogEvent, RunRow } from "../records.js";

export function checkParentsAndChildren(evidence: Evidence, report: Report): void {
  const { runs } = evidence.records;
  const children = new Map<string, RunRow[]>();
  for (const run of runs.values()) {
    if (run.parentId === null) continue;
    const parent = runs.get(run.parentId);
    if (parent === undefined) report("I12", run.id, `Its parent ${run.parentId} does not exist.`);
    else if (parent.finishedAt !== null && run.finishedAt === null)
      report("I12", run.id, `It is ${run.status} although its parent ${parent.id} is ${parent.status}.`);
    children.set(run.parentId, [...(children.get(run.parentId) ?? []), run]);
  }
  for (const [run, log] of evidence.runs()) {
    const own = children.get(run.id) ?? [];
    checkChildren(run, log, own, report);
    checkMaps(run, log, own, report);
    checkNodes(run, own, report);
  }
}

function checkChildren(run: RunRow, log: readonly LogEvent[], own: readonly RunRow[], report: Report): void {
  const started = new Map<string, string>();
  for (const { type, node, data } of log) {
    if (type === "child.started") {
      started.set(String(node), data.runId);
      if (!own.some(({ id }) => id === data.runId)) report("I12", run.id, `Its child ${data.runId} does not exist.`);
    }
    const said = /^child\.(completed|failed|canceled)$/.exec(type)?.[1];
    if (said === undefined) continue;
    const child = own.find(({ id }) => id === started.get(String(node)));
    if (child?.status !== said)
      report("I12", run.id, `Child ${child?.id} is ${child?.status}, and was told as ${said}.`);
    if (said === "completed" && canonical(data.output) !== canonical(JSON.parse(child?.output ?? "null")))
      report(
        "I12",
        run.id,
        `The output of child ${child?.id} is ${child?.output}, and was told as ${canonical(data.output)}.`,
      );
  }
}

function checkMaps(run: RunRow, log: readonly LogEvent[], own: readonly RunRow[], report: Report): void {
  for (const { node, data } of log.filter(({ type }) => type === "map.started")) {
    const items = own.filter(({ parentNode }) => parentNode === node);
    const indexes = new Set(items.map(({ parentIndex }) => parentIndex));
    if (indexes.size < items.length || items.length > data.count)
      report(
        "I12",
        run.id,
        `Map ${node} of ${data.count} has ${items.length} children, ${indexes.size} of them different.`,
      );
    const settled = log.filter((one) => one.type === "map.settled" && one.node === node);
    const seen = new Set<number>();
    for (const outcome of ["completed", "failed"] as const)
      for (const index of settled.flatMap((one) => one.data[outcome].flatMap(range) as number[])) {
        if (seen.has(index)) report("I12", run.id, `Child ${index} of map ${node} is settled twice.`);
        seen.add(index);
        const child = items.find(({ parentIndex }) => parentIndex === index);
        const isRight =
          outcome === "completed" ? child?.status === "completed" : /failed|canceled/.test(child?.status ?? "");
        if (!isRight)
          report("I12", run.id, `Child ${index} of map ${node} is ${child?.status}, and was told as ${outcome}.`);
      }
  }
}

/** Each attempt at a node is a run of its own, whose input names the node; only one of them may have completed. */
function checkNodes(run: RunRow, own: readonly RunRow[], report: Report): void {
  const completed = new Map<string, string>();
  for (const { id, workflow, status, input } of own) {
    if (!workflow.startsWith("job:") || status !== "completed") continue;
    const node: string = JSON.parse(input).node.id;
    const other = completed.get(node);
    if (other !== undefined) report("key", run.id, `The job of node ${node} completed twice, as ${other} and ${id}.`);
    completed.set(node, id);
  }
}

const range = ([first, last]: [number, number]) => Array.from({ length: last - first + 1 }, (_, n) => first + n);
const canonical = (value: unknown) => JSON.stringify(value ?? null);
