/**
 * Turns the tree of rows into a list of at most 500 rows with at most 500 spans. Repeated steps become one row, which can be
 * expanded. A row with too many spans gets fewer: those with the smallest gaps between them are joined.
 */
import { groupBy, joinSpans } from "./join-spans.js";
import { type RowNode, type RowState, startOf, type WaterfallRow } from "./rows.js";
import { namePattern } from "./similar-names.js";

const maxSpans = 500;
/** Up to this many rows with similar names are shown one by one. */
const maxSimilar = 8;
/** A group with more members than fit is split into about this many groups, by time. */
const partsOfLargeGroup = 100;
const spansOfGroup = 40;

/** @param expand the id of a group, whose members are returned; null returns all rows */
export function flattenRows(roots: readonly RowNode[], expand: string | null): WaterfallRow[] {
  if (expand === null) return withinLimits(roots, 0, "");
  const found = findMembers(roots, expand, 0, "");
  return found === null ? [] : withinLimits(found.members, found.depth, expand, true);
}

/** @param isExpanded whether the rows are members of one group, which are alike but must not become that group again */
function withinLimits(nodes: readonly RowNode[], depth: number, path: string, isExpanded = false): WaterfallRow[] {
  const ordinary = isExpanded ? flatten(nodes, depth) : flatten(groupSimilar(nodes, path, maxSimilar), depth);
  if (fits(ordinary)) return ordinary;
  const grouped = isExpanded ? flatten(inParts(nodes, path), depth) : flatten(groupSimilar(nodes, path, 1), depth);
  const rows = grouped.length <= maxSpans ? grouped : flatten(inParts(groupSimilar(nodes, path, 1), "*"), depth);
  return withFewerSpans(rows);
}

const countSpans = (rows: readonly WaterfallRow[]) => rows.reduce((sum, { spans }) => sum + spans.length, 0);
const fits = (rows: readonly WaterfallRow[]) => rows.length <= maxSpans && countSpans(rows) <= maxSpans;

function withFewerSpans(rows: readonly WaterfallRow[]): WaterfallRow[] {
  for (let limit = spansOfGroup; ; limit = Math.floor(limit / 2)) {
    const joined = rows.map((row) =>
      row.spans.length <= limit ? row : { ...row, spans: joinSpans(row.spans, limit) },
    );
    if (limit <= 1 || countSpans(joined) <= maxSpans) return joined;
  }
}

function flatten(nodes: readonly RowNode[], depth: number): WaterfallRow[] {
  return nodes.flatMap(({ row, children }) => [
    { ...row, depth },
    ...flatten(groupSimilar(children, row.node ?? row.id, maxSimilar), depth + 1),
  ]);
}

/** Replaces rows with similar names by one, if there are more than `limit`. The group is where its first member is. */
function groupSimilar(nodes: readonly RowNode[], path: string, limit: number): RowNode[] {
  const membersById = groupBy(nodes, (node) => groupIdOf(node, path));
  return nodes.flatMap((node) => {
    const id = groupIdOf(node, path);
    const members = membersById.get(id) as RowNode[];
    if (members.length <= limit || node.row.kind === "run") return [node];
    return members[0] === node ? [groupOf(id, namePattern(node.row.name), members)] : [];
  });
}

const groupIdOf = ({ row }: RowNode, path: string) => `${path}/${row.kind}:${namePattern(row.name)}`;

/** Splits rows, in their order, into parts of equal size. */
function inParts(nodes: readonly RowNode[], id: string): RowNode[] {
  const size = Math.max(2, Math.ceil(nodes.length / partsOfLargeGroup));
  const parts: RowNode[] = [];
  const base = id.replace(partPattern, "");
  for (let first = 0; first < nodes.length; first += size) {
    const members = nodes.slice(first, first + size);
    const seqs = members.map(({ firstSeq }) => firstSeq);
    const [firstName, lastName] = [members[0], members.at(-1)].map((node) => node?.row.name);
    const partId = `${base}@${Math.min(...seqs)}-${Math.max(...seqs)}`;
    parts.push(members.length === 1 ? (members[0] as RowNode) : groupOf(partId, `${firstName} … ${lastName}`, members));
  }
  return parts;
}

/** A part of a group, by the numbers of the first events of its members. */
const partPattern = /@(\d+)-(\d+)$/;

function groupOf(id: string, name: string, members: readonly RowNode[]): RowNode {
  const rows = members.map(({ row }) => row);
  const [first] = rows as [WaterfallRow];
  const row: WaterfallRow = {
    id,
    node: null,
    name,
    kind: first.kind,
    depth: first.depth,
    state: stateOfGroup(rows),
    attempts: 0,
    detail: null,
    child: first.child === null ? null : { runId: null, workflow: first.child.workflow },
    group: {
      id,
      count: rows.length,
      ended: rows.filter(({ state }) => endedStates.has(state)).length,
      failed: rows.filter(({ state }) => state === "failed").length,
      pending: rows.filter(({ state }) => state === "pending").length,
    },
    spans: joinSpans(
      rows.flatMap(({ spans }) => spans),
      spansOfGroup,
    ),
  };
  return { row, firstSeq: (members[0] as RowNode).firstSeq, children: [] };
}

const endedStates: ReadonlySet<RowState> = new Set(["completed", "failed", "canceled", "skipped"]);
const mostImportantFirst: readonly RowState[] = ["failed", "executing", "waiting", "scheduled", "paused", "running"];

function stateOfGroup(rows: readonly WaterfallRow[]): RowState {
  const states = new Set(rows.map(({ state }) => state));
  const important = mostImportantFirst.find((state) => states.has(state));
  if (important !== undefined) return important;
  if (states.has("pending")) return states.size > 1 ? "waiting" : "pending";
  return states.has("completed") ? "completed" : ([...states][0] ?? "pending");
}

interface Found {
  readonly members: readonly RowNode[];
  readonly depth: number;
}

/** Finds the members of a group, wherever in the tree it is. null: there is no such group. */
function findMembers(nodes: readonly RowNode[], id: string, depth: number, path: string): Found | null {
  const part = partPattern.exec(id);
  const base = part === null ? id : id.slice(0, part.index);
  const isInPart = ({ firstSeq }: RowNode) =>
    part === null || (firstSeq >= Number(part[1]) && firstSeq <= Number(part[2]));
  if (base === "*") return { members: nodes.filter(isInPart), depth: depth + 1 };
  const members = nodes.filter((node) => groupIdOf(node, path) === base && isInPart(node));
  if (members.length > 0) return { members, depth: depth + 1 };
  for (const node of nodes) {
    if (node.row.group?.id === base && node.members !== undefined)
      return { members: node.members().filter(isInPart), depth: depth + 1 };
    const found = findMembers(node.children, id, depth + 1, node.row.node ?? node.row.id);
    if (found !== null) return found;
  }
  return null;
}

/** By their starts; rows that have not begun come last. */
export const byStart = (a: RowNode, b: RowNode): number => {
  const [first, second] = [startOf(a.row), startOf(b.row)];
  return first === second ? a.firstSeq - b.firstSeq : first - second;
};
