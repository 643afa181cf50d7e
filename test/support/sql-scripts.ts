/** SQL scripts, run as a person runs them: with the command line of the database. */
import { spawn } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { createConnection } from "mysql2/promise";
import pg from "pg";

/** Runs the script with psql, mariadb or mysql, or, on a machine without that program, with the driver and the same rules. */
export async function runScript(url: string, script: string): Promise<void> {
  if (url.startsWith("mysql:")) return runOnMysql(url, script);
  const psql = findProgram("psql");
  if (psql !== null) return run(psql, ["-1", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-", url], script);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(script).finally(() => client.end());
}

async function runOnMysql(url: string, script: string): Promise<void> {
  const program = findProgram("mariadb") ?? findProgram("mysql");
  if (program !== null) {
    const { hostname, port, username, password, pathname } = new URL(url);
    const account = [`--user=${username || "root"}`, ...(password === "" ? [] : [`--password=${password}`])];
    const server = ["--protocol=tcp", `--host=${hostname}`, `--port=${port || 3306}`];
    return run(program, [...server, ...account, pathname.slice(1)], script);
  }
  const connection = await createConnection({ uri: url, multipleStatements: true });
  for (const statement of splitAtDelimiters(script)) await connection.query(statement);
  await connection.end();
}

/**
 * The script without its DELIMITER commands, in parts that a driver can send: each statement between them alone, and what is
 * outside of them as it is.
 */
export function splitAtDelimiters(script: string): string[] {
  const [before = "", ...sections] = script.split(/^DELIMITER \/\/$/m);
  const statements = sections.flatMap((section) => {
    const [inside = "", after = ""] = section.split(/^DELIMITER ;$/m);
    return [...inside.split(/ \/\/$/m), after];
  });
  return [before, ...statements].filter((statement) => statement.trim() !== "");
}

function findProgram(name: string): string | null {
  const isExecutable = (path: string) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  };
  const folders = (process.env.PATH ?? "").split(delimiter).filter(Boolean);
  return folders.map((folder) => join(folder, name)).find(isExecutable) ?? null;
}

function run(program: string, args: readonly string[], input: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["pipe", "ignore", "pipe"] });
    let errors = "";
    child.stderr.on("data", (text) => {
      errors += text;
    });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve() : reject(new Error(`${program}: ${errors}`))));
    child.stdin.end(input);
  });
}
