/** Builds the statements that create a stored procedure. */

/** The type of texts: the server converts what a caller with another character set passes. */
export const text = "LONGTEXT CHARACTER SET utf8mb4";

/**
 * No literal in a procedure contains a backslash, because its meaning depends on the sql_mode of who creates it. With its
 * collation, the backslash may be joined with text of any collation.
 */
export const backslash = "_utf8mb4 0x5c COLLATE utf8mb4_bin";

export const isMariadb = "VERSION() LIKE '%MariaDB%'";

/** A regular expression as a hexadecimal literal, in which backslashes mean the same under every sql_mode. */
export const pattern = (expression: string): string => `_utf8mb4 0x${Buffer.from(expression).toString("hex")}`;
export const binaryPattern = (expression: string): string => `0x${Buffer.from(expression).toString("hex")}`;

/**
 * DDL commits by itself, so both statements can be repeated. (MySQL before 8.0.29 has neither CREATE OR REPLACE nor IF NOT
 * EXISTS for procedures.)
 *
 * @param body ASCII without apostrophes in its comments: a command-line client with any character set may send it
 */
export const procedure = (name: string, parameters: readonly string[], body: string): readonly string[] => [
  `DROP PROCEDURE IF EXISTS ${name}`,
  `CREATE PROCEDURE ${name}(${parameters.join(", ")})
SQL SECURITY INVOKER
${body.trim()}`,
];

/** @param message an SQL expression */
export const raise = (code: string, message: string): string => `CALL pawl_internal_raise('${code}', ${message});`;

/** A name as JSON.stringify writes it. Names contain no control characters. */
export const quoted = (name: string): string =>
  `CONCAT('"', REPLACE(REPLACE(${name}, ${backslash}, CONCAT(${backslash}, ${backslash})), '"', CONCAT(${backslash}, '"')), '"')`;

export const jsonField = (json: string, field: string): string => `JSON_EXTRACT(${json}, '$.${field}')`;

/** The type of a JSON value in JavaScript's words. */
export const jsonTypeName = (json: string): string =>
  `CASE JSON_TYPE(${json}) WHEN 'STRING' THEN 'string' WHEN 'OBJECT' THEN 'object' WHEN 'ARRAY' THEN 'array' WHEN 'BOOLEAN' THEN 'boolean' WHEN 'NULL' THEN 'null' ELSE 'number' END`;
