/** The statements by which a batch takes keys from runs, before everything else of the batch is written. */
import { startDeadlineOf } from "../../core/run/transition.js";
import type { KeyChange, KeyMove, StartReplacement } from "../contract/store.js";
import { createStatement, type Dialect } from "./dialect.js";
import { encodeTags } from "./records.js";

export interface KeyStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** For a SELECT: if it finds no row, the batch conflicts with this run. null for a statement that writes. */
  readonly conflictsWith: string | null;
}

type KeyDialect = Pick<Dialect, "placeholder" | "table" | "forUpdate">;

/** @param at the instant of the commit */
export function keyStatements({ openRunId, moves, replacement }: KeyChange, at: number, dialect: KeyDialect) {
  const statements: KeyStatement[] = [];
  const add = (buildSql: (bind: (value: unknown) => string) => string, conflictsWith: string | null = null) => {
    const { bind, values } = createStatement(dialect as Dialect);
    statements.push({ text: buildSql(bind), values, conflictsWith });
  };
  const { forUpdate } = dialect;
  const [runs, tasks, deadlines] = [dialect.table("runs"), dialect.table("tasks"), dialect.table("start_deadlines")];
  if (openRunId !== null)
    add((bind) => `SELECT t.run_id FROM ${tasks} t WHERE t.run_id = ${bind(openRunId)} ${forUpdate}`, openRunId);
  for (const move of moves) {
    const column = columnOf(move);
    const isHolder = (bind: (value: unknown) => string) =>
      `r.id = ${bind(move.runId)} AND r.${column} = ${bind(move.value)}`;
    add((bind) => `SELECT r.id FROM ${runs} r WHERE ${isHolder(bind)} ${forUpdate}`, move.runId);
    add((bind) => `UPDATE ${runs} SET ${column} = NULL WHERE id = ${bind(move.runId)}`);
    if (move.to !== null)
      add((bind) => `UPDATE ${runs} SET ${column} = ${bind(move.value)} WHERE id = ${bind(move.to)}`);
  }
  if (replacement !== null) {
    const { runId, version, priority } = replacement;
    add((bind) => {
      const set = replacedColumns(replacement).map(([name, value]) => `${name} = ${bind(value)}`);
      return `UPDATE ${runs} SET ${set.join(", ")} WHERE id = ${bind(runId)}`;
    });
    add(
      (bind) =>
        `UPDATE ${tasks} SET version = ${bind(version)}, priority = ${bind(priority)} WHERE run_id = ${bind(runId)}`,
    );
    add((bind) => `DELETE FROM ${deadlines} WHERE run_id = ${bind(runId)}`);
    const deadline = startDeadlineOf(replacement, at);
    if (deadline !== null)
      add((bind) => `INSERT INTO ${deadlines} (run_id, at) VALUES (${bind(runId)}, ${bind(deadline)})`);
  }
  return statements;
}

const columnOf = ({ key }: KeyMove) => (key === "startKey" ? "start_key" : "hero_key");

const replacedColumns = (replacement: StartReplacement): readonly (readonly [name: string, value: unknown])[] => [
  ["version", replacement.version],
  ["priority", replacement.priority],
  ["input", replacement.input],
  ["tags", encodeTags(replacement.tags)],
  ["started_by", replacement.startedBy ?? null],
];
