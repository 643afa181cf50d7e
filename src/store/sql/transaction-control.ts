/**
 * Finds SQL that would end, begin or change a transaction. Pawl commits the transaction of a transactional step
 * together with the step's record. If the step itself ended the transaction, the step's effects and its record could
 * exist without each other.
 */
import { type SqlSyntax, splitStatements } from "./lexer.js";

/** The transaction control in this SQL ("COMMIT", "START TRANSACTION"), or null. Savepoints are allowed. */
export function findTransactionControl(sql: string, syntax: SqlSyntax): string | null {
  if (!mayContainControl(sql, syntax)) return null;
  for (const words of splitStatements(sql, syntax)) {
    const control = controlOf(words) ?? (syntax.implicitCommits ? implicitCommitOf(words) : null);
    if (control !== null) return control;
  }
  return null;
}

/** Nearly every statement contains none of these words, and is then allowed without being split into words. */
const controlWords = /\b(?:begin|start|commit|end|rollback|abort|prepare|set|xa|lock|unlock)\b/i;
const mayContainControl = (sql: string, { implicitCommits }: SqlSyntax) =>
  controlWords.test(sql) || (implicitCommits && implicitCommitWords.test(sql));

function controlOf(words: readonly string[]): string | null {
  const [first, second, third] = words;
  switch (first) {
    case "BEGIN":
    case "COMMIT":
    case "END":
    case "ABORT":
    case "XA":
      return first;
    case "ROLLBACK":
      return isToSavepoint(second, third) ? null : first;
    case "START":
      return second === "TRANSACTION" ? "START TRANSACTION" : null;
    case "PREPARE":
      return second === "TRANSACTION" ? "PREPARE TRANSACTION" : null;
    case "SET":
      return transactionSettingOf(words);
    case "LOCK":
    case "UNLOCK":
      // PostgreSQL's LOCK TABLE is allowed: it lasts until the end of the transaction and does not end it.
      return second === "TABLES" ? `${first} TABLES` : null;
    default:
      return null;
  }
}

/** ROLLBACK [WORK | TRANSACTION] TO … */
const isToSavepoint = (second?: string, third?: string) =>
  second === "TO" || ((second === "WORK" || second === "TRANSACTION") && third === "TO");

/** SET TRANSACTION …, SET SESSION CHARACTERISTICS …, SET autocommit = 0, SET a = 1, @@session.autocommit = 1 */
function transactionSettingOf(words: readonly string[]): string | null {
  const [, second, third] = words;
  const name = second === "SESSION" || second === "GLOBAL" || second === "LOCAL" ? third : second;
  if (name === "TRANSACTION" || name === "CHARACTERISTICS") return `SET ${name}`;
  return words.includes("AUTOCOMMIT") ? "SET autocommit" : null;
}

/** The first words of statements that commit the open transaction on MySQL and MariaDB. */
const implicitCommitWords =
  /\b(?:alter|analyze|cache|change|check|create|drop|flush|grant|install|load|optimize|purge|rename|repair|reset|revoke|stop|truncate|uninstall)\b/i;

function implicitCommitOf([first, second]: readonly string[]): string | null {
  if (first === undefined || !implicitCommitWords.test(first)) return null;
  if (second === "TEMPORARY" && (first === "CREATE" || first === "DROP")) return null;
  if (first === "LOAD" && second !== "INDEX") return null;
  return second === undefined ? first : `${first} ${second}`;
}
