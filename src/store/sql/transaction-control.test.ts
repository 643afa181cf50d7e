/** Which SQL counts as transaction control, and which only looks like it. */
import { describe, expect, test } from "vitest";
import { mysqlSyntax, postgresSyntax, type SqlSyntax, sqliteSyntax } from "./lexer.js";
import { findTransactionControl } from "./transaction-control.js";

const syntaxes = { postgres: postgresSyntax, sqlite: sqliteSyntax, mysql: mysqlSyntax };

describe.each(Object.entries(syntaxes))("in the SQL of %s", (_name, syntax: SqlSyntax) => {
  test.each([
    ["COMMIT", "COMMIT"],
    ["  commit work ;", "COMMIT"],
    ["COMMIT AND CHAIN", "COMMIT"],
    ["COMMIT PREPARED 'x'", "COMMIT"],
    ["ROLLBACK", "ROLLBACK"],
    ["Rollback Transaction", "ROLLBACK"],
    ["BEGIN", "BEGIN"],
    ["BEGIN IMMEDIATE", "BEGIN"],
    ["END", "END"],
    ["ABORT", "ABORT"],
    ["START\n TRANSACTION READ ONLY", "START TRANSACTION"],
    ["PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION"],
    ["SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION"],
    ["SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "SET CHARACTERISTICS"],
    ["INSERT INTO t VALUES (1); COMMIT", "COMMIT"],
    ["SELECT 1;;\n ; rollback", "ROLLBACK"],
    ["-- a remark\nCOMMIT", "COMMIT"],
    ["/* a remark */ COMMIT", "COMMIT"],
    ["SELECT 'it''s'; COMMIT", "COMMIT"],
    ['SELECT ";"; COMMIT', "COMMIT"],
    ["(COMMIT)", "COMMIT"],
  ])("%j is transaction control", (sql, control) => {
    expect(findTransactionControl(sql, syntax)).toBe(control);
  });

  test.each([
    "",
    ";",
    "SELECT 1",
    "SAVEPOINT mine",
    "RELEASE SAVEPOINT mine",
    "RELEASE mine",
    "ROLLBACK TO mine",
    "ROLLBACK TO SAVEPOINT mine",
    "ROLLBACK WORK TO SAVEPOINT mine",
    "ROLLBACK TRANSACTION TO mine",
    "SELECT 'x; COMMIT'",
    "SELECT 'it''s; COMMIT'",
    'SELECT "x; COMMIT" FROM t',
    "SELECT 1 -- ; COMMIT",
    "SELECT 1 /* ; COMMIT */",
    "SELECT commit, rollback FROM t",
    "UPDATE t SET transaction = 1, autocommit = 2",
    "INSERT INTO commit VALUES ('begin')",
    "SELECT CASE WHEN a THEN 1 ELSE 2 END FROM t",
    "PREPARE mine AS SELECT 1",
    "SET search_path = x",
    "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
  ])("%j is not transaction control", (sql) => {
    expect(findTransactionControl(sql, syntax)).toBeNull();
  });
});

describe("where databases parse the same text differently", () => {
  test("a backslash escapes a quote on MySQL only", () => {
    const sql = "SELECT '\\'; COMMIT; -- '";
    expect(findTransactionControl(sql, postgresSyntax)).toBe("COMMIT");
    expect(findTransactionControl(sql, sqliteSyntax)).toBe("COMMIT");
    expect(findTransactionControl(sql, mysqlSyntax)).toBeNull();
    expect(findTransactionControl("SELECT E'\\'; COMMIT; -- '", postgresSyntax)).toBeNull();
    expect(findTransactionControl("SELECT e'\\\\'; COMMIT", postgresSyntax)).toBe("COMMIT");
  });

  test("a dollar-quoted text is a string on PostgreSQL", () => {
    expect(findTransactionControl("DO $$ BEGIN; COMMIT; END $$", postgresSyntax)).toBeNull();
    expect(findTransactionControl("SELECT $a$ $$; COMMIT; $a$", postgresSyntax)).toBeNull();
    expect(findTransactionControl("SELECT $1; COMMIT", postgresSyntax)).toBe("COMMIT");
    expect(findTransactionControl("SELECT a$b FROM t; COMMIT; SELECT a$b", postgresSyntax)).toBe("COMMIT");
    expect(findTransactionControl("SELECT $a$ x $a$; COMMIT", postgresSyntax)).toBe("COMMIT");
  });

  test("comments nest on PostgreSQL, and some are executed on MySQL", () => {
    expect(findTransactionControl("/* /* */ COMMIT */ SELECT 1", postgresSyntax)).toBeNull();
    expect(findTransactionControl("/* /* */ COMMIT", sqliteSyntax)).toBe("COMMIT");
    expect(findTransactionControl("/*!50000 COMMIT */", mysqlSyntax)).toBe("COMMIT");
    expect(findTransactionControl("/*M! COMMIT */", mysqlSyntax)).toBe("COMMIT");
    expect(findTransactionControl("SELECT 1 # ; COMMIT", mysqlSyntax)).toBeNull();
    expect(findTransactionControl("SELECT 1 # 2; COMMIT", postgresSyntax)).toBe("COMMIT");
    expect(findTransactionControl("SELECT `; COMMIT` FROM t", mysqlSyntax)).toBeNull();
  });

  test("semicolons inside the body of a trigger or function do not end the statement", () => {
    const trigger =
      "CREATE TRIGGER t AFTER INSERT ON a BEGIN UPDATE b SET c = CASE WHEN 1 THEN 2 END; DELETE FROM d; END";
    expect(findTransactionControl(trigger, sqliteSyntax)).toBeNull();
    expect(findTransactionControl(`${trigger}; COMMIT`, sqliteSyntax)).toBe("COMMIT");
    const atomic = "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC SELECT 1; SELECT 2; END";
    expect(findTransactionControl(atomic, postgresSyntax)).toBeNull();
  });

  test.each([
    ["CREATE TABLE t (a int)", "CREATE TABLE"],
    ["alter table t add b int", "ALTER TABLE"],
    ["TRUNCATE t", "TRUNCATE T"],
    ["DROP TABLE t", "DROP TABLE"],
    ["LOCK TABLES t WRITE", "LOCK TABLES"],
    ["UNLOCK TABLES", "UNLOCK TABLES"],
    ["SET autocommit = 1", "SET autocommit"],
    ["SET @@autocommit = 1", "SET autocommit"],
    ["SET SESSION autocommit = 0", "SET autocommit"],
    ["SET @@session.autocommit = 0", "SET autocommit"],
    ["SET @a = 1, autocommit = 0", "SET autocommit"],
    ["SELECT 5--1; COMMIT", "COMMIT"],
    ["SELECT 5 -- 1; COMMIT", null],
    ["XA START 'x'", "XA"],
    ["CREATE TEMPORARY TABLE t (a int)", null],
    ["DROP TEMPORARY TABLE t", null],
    ["LOAD DATA INFILE 'x' INTO TABLE t", null],
    ["SELECT * FROM t LOCK IN SHARE MODE", null],
    ["SET @a = 1", null],
  ])("on MySQL, where DDL commits the transaction: %j", (sql, control) => {
    expect(findTransactionControl(sql, mysqlSyntax)).toBe(control);
  });

  test("DDL is part of the transaction on PostgreSQL and SQLite", () => {
    for (const syntax of [postgresSyntax, sqliteSyntax]) {
      for (const sql of ["CREATE TABLE t (a int)", "DROP TABLE t", "TRUNCATE t", "LOCK TABLE t"]) {
        expect(findTransactionControl(sql, syntax)).toBeNull();
      }
    }
  });
});
