/**
 * Splits SQL into statements, each a list of its words in upper case. Strings, quoted names and comments are skipped,
 * so that a word inside them is not taken for a statement. The lexer knows no grammar: its result only tells how
 * statements begin.
 */

/** How a database writes strings and comments: the same text can be different statements on different databases. */
export interface SqlSyntax {
  /** A backslash in '…' escapes the next character (MySQL). On PostgreSQL it does so only in E'…'. */
  readonly backslashEscapes: boolean;
  /** $tag$ … $tag$ is a string. */
  readonly dollarQuotes: boolean;
  /** A comment may contain other comments. */
  readonly nestedComments: boolean;
  /** # begins a comment, and the content of a comment of the form /*! … *\/ is executed. */
  readonly mysqlComments: boolean;
  /** DDL and some other statements commit the open transaction. */
  readonly implicitCommits: boolean;
}

export const postgresSyntax: SqlSyntax = {
  backslashEscapes: false,
  dollarQuotes: true,
  nestedComments: true,
  mysqlComments: false,
  implicitCommits: false,
};

export const sqliteSyntax: SqlSyntax = { ...postgresSyntax, dollarQuotes: false, nestedComments: false };

export const mysqlSyntax: SqlSyntax = {
  backslashEscapes: true,
  dollarQuotes: false,
  nestedComments: false,
  mysqlComments: true,
  implicitCommits: true,
};

const wordPattern = /[\p{L}_][\p{L}\p{N}_$]*/uy;
const dollarTagPattern = /\$(?:[\p{L}_][\p{L}\p{N}_]*)?\$/uy;
/**
 * Matches text that is skipped: numbers, placeholders and user variables. Of a system variable (@@session.x) only the
 * "@@" is skipped, so that the words after it are read.
 */
const nonWordPattern = /@@|[@:$]*[\p{N}\p{L}_$]+/uy;
/** The opening of a comment that MySQL (or only MariaDB) executes, with the minimum version. */
const executableCommentPattern = /\/\*M?!\d*/y;

export function splitStatements(sql: string, syntax: SqlSyntax): readonly (readonly string[])[] {
  const statements: string[][] = [[]];
  let words = statements[0] as string[];
  let position = 0;
  while (position < sql.length) {
    const char = sql[position] as string;
    const pair = sql.slice(position, position + 2);
    if (isLineComment(sql, position, syntax)) position = endOfLine(sql, position);
    else if (pair === "/*") position = endOfComment(sql, position, syntax);
    else if (char === "'")
      position = endOfQuoted(sql, position, syntax.backslashEscapes || isEscapeString(sql, position, syntax));
    else if (char === '"' || char === "`")
      position = endOfQuoted(sql, position, syntax.backslashEscapes && char === '"');
    else if (char === "$" && syntax.dollarQuotes) position = endOfDollarQuoted(sql, position);
    else if (char === ";") {
      position += 1;
      // Semicolons inside the body of a trigger or function do not end the statement.
      if (isInsideBody(words)) continue;
      statements.push((words = []));
    } else {
      const matchedWord = matchAt(wordPattern, sql, position);
      if (matchedWord !== null) words.push(matchedWord.toUpperCase());
      position += matchedWord?.length ?? matchAt(nonWordPattern, sql, position)?.length ?? 1;
    }
  }
  return statements.filter((statement) => statement.length > 0);
}

function matchAt(pattern: RegExp, sql: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(sql)?.[0] ?? null;
}

/** MySQL reads "--" as a comment only with a blank after it, so that "5--1" is a number. */
const isLineComment = (sql: string, at: number, { mysqlComments }: SqlSyntax) =>
  mysqlComments
    ? sql[at] === "#" || (sql.startsWith("--", at) && /^\s?$/.test(sql.slice(at + 2, at + 3)))
    : sql.startsWith("--", at);

function endOfLine(sql: string, from: number): number {
  const end = sql.indexOf("\n", from);
  return end === -1 ? sql.length : end + 1;
}

function endOfComment(sql: string, from: number, { mysqlComments, nestedComments }: SqlSyntax): number {
  // The content of an executable comment is read like other SQL; the closing "*/" is skipped as punctuation.
  const opening = mysqlComments ? matchAt(executableCommentPattern, sql, from) : null;
  if (opening !== null) return from + opening.length;
  let depth = 1;
  let position = from + 2;
  while (position < sql.length && depth > 0) {
    const pair = sql.slice(position, position + 2);
    if (pair === "*/") depth -= 1;
    else if (pair === "/*" && nestedComments) depth += 1;
    position += pair === "*/" || (pair === "/*" && nestedComments) ? 2 : 1;
  }
  return position;
}

/** A doubled quote is read as the end of one string and the beginning of the next: the words outside are the same. */
function endOfQuoted(sql: string, from: number, hasEscapes: boolean): number {
  const quote = sql[from];
  for (let at = from + 1; at < sql.length; at += 1) {
    if (hasEscapes && sql[at] === "\\") at += 1;
    else if (sql[at] === quote) return at + 1;
  }
  return sql.length;
}

const isEscapeString = (sql: string, at: number, { dollarQuotes }: SqlSyntax) =>
  dollarQuotes && /(?:^|[^\p{L}\p{N}_$])[eE]$/u.test(sql.slice(Math.max(0, at - 2), at));

function endOfDollarQuoted(sql: string, from: number): number {
  const tag = matchAt(dollarTagPattern, sql, from);
  if (tag === null) return from + 1;
  const end = sql.indexOf(tag, from + tag.length);
  return end === -1 ? sql.length : end + tag.length;
}

function isInsideBody(words: readonly string[]): boolean {
  if (words[0] !== "CREATE") return false;
  let depth = 0;
  for (const keyword of words) {
    if (keyword === "BEGIN" || keyword === "CASE") depth += 1;
    else if (keyword === "END" && depth > 0) depth -= 1;
  }
  return depth > 0;
}
