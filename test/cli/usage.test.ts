/** Help texts, and errors for mistyped commands and options. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { groups } from "../../src/cli/commands.js";
import { newFolder } from "./command-line.js";

const names = groups.flatMap(({ commands }) => commands.map(({ name }) => name));

test("without a command, and with `help`, all commands are listed", async () => {
  const folder = newFolder();
  const overview = await folder.text();
  expect(overview).toBe(await folder.text("help"));
  expect(overview).toContain(
    "Name a run by its id, or by the beginning or the end of its id (at least 6 characters; the last 8 are unique).",
  );
  for (const name of names) expect(overview).toMatch(new RegExp(`^  ${name}( |$)`, "m"));
  expect(overview).not.toContain("\u001b[");
});

test.each(names)("`help %s` prints the usage, the options and an example", async (name) => {
  const text = await newFolder().text("help", name);
  expect(text).toContain(`Usage  pawl ${name}`);
  expect(text).toMatch(/^Example {2}.*pawl /m);
  expect(text).toContain("--json");
});

test("`--help` prints the same as `help`, even when arguments are missing", async () => {
  const folder = newFolder();
  expect(await folder.text("signal", "--help")).toBe(await folder.text("help", "signal"));
  expect(await folder.text("-h")).toBe(await folder.text("help"));
});

test("--version prints the version of the package", async () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const folder = newFolder();
  expect(await folder.text("--version")).toBe(`${version}\n`);
  expect(await folder.text("-v")).toBe(`${version}\n`);
});

test.each([
  [["rusn"], 'There is no command "rusn"; did you mean "runs"?'],
  [["frobnicate"], 'There is no command "frobnicate". `pawl help` lists them.'],
  [["help", "shwo"], 'There is no command "shwo"; did you mean "show"?'],
  [["runs", "--stauts", "failed"], 'pawl runs has no option "--stauts"; did you mean "--status"?'],
  [["runs", "-x"], 'pawl runs has no option "-x". `pawl help runs` lists them.'],
  [["--jsno"], 'pawl has no option "--jsno"; did you mean "--json"?'],
  [["runs", "--status", "faild"], /^--status is one of pending, .*, not "faild"; did you mean "failed"\?$/],
  [["runs", "--limit", "many"], '--limit takes a whole number, not "many".'],
  [["runs", "--tag"], "--tag needs a value: --tag <tag>"],
  [["runs", "--tag", "--active"], "--tag needs a value: --tag <tag>"],
  [["runs", "--active=yes"], "--active takes no value."],
  [["show"], "<run> is missing. Usage: pawl show <run>"],
  [["signal", "0123456"], "<name> is missing. Usage: pawl signal <run> <name> [json]"],
  [["graph"], "<file> is missing. Usage: pawl graph <file>"],
  [["start", "order", "{}", "more"], '"more" is one argument too many. Usage: pawl start <workflow> [json]'],
  [["worker"], /^Which workflows\? Name a file: pawl worker workflows.ts/],
  [["dev"], "There is no workflows.ts here; name a file: pawl dev my-workflows.ts"],
  [["dashboard", "--port", "many"], '--port takes a whole number, not "many".'],
  [["dashboard", "--port", "70000"], "--port is at most 65535, not 70000."],
  [["dashboard", "--label", " "], "--label is a text of at most 60 characters."],
  [["dashboard"], /^There is no database .*pawl\.db; `pawl dev` and `pawl migrate` make one/],
  [["dashboard", "--host", "0.0.0.0"], /^--host 0\.0\.0\.0 would let other machines in without a login; .*`authorize`/],
  [["completion", "tcsh"], 'There is no completion for "tcsh"; there is for bash, zsh, fish.'],
  [["runs", "--url", "oracle://host/db"], /is not a database URL that Pawl knows/],
])("%j is refused in one sentence", async (args, sentence) => {
  expect(await newFolder().error(...args)).toMatch(sentence instanceof RegExp ? sentence : exactly(sentence));
});

const exactly = (text: string) => new RegExp(`^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);

test("--debug prints the stack of an error", async () => {
  const { code, stderr } = await newFolder().pawl("runs", "--debug");
  expect(code).toBe(1);
  expect(stderr).toContain("There is no database");
  expect(stderr).toMatch(/\n {4}at .*cli\/database/);
});

test("options may precede the command", async () => {
  const folder = newFolder();
  const { stdout } = await folder.pawl("--json", "--url", folder.url, "migrate");
  expect(JSON.parse(stdout)).toMatchObject({ database: expect.stringContaining("pawl.db") });
});

test("bash completes commands, options, statuses and files", async () => {
  const folder = newFolder();
  folder.write("workflows.ts", "");
  const script = folder.write("completion.bash", await folder.text("completion", "bash"));
  const ask = async (...words: string[]) => {
    const code = `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pawl; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const { stdout } = await promisify(execFile)("bash", ["-c", code, script, ...words], { cwd: folder.path });
    return stdout.trim().split("\n");
  };
  expect(await ask("pawl", "res")).toEqual(["resume"]);
  expect(await ask("pawl", "")).toEqual(expect.arrayContaining([...names, "--json"]));
  expect(await ask("pawl", "runs", "--sta")).toEqual(["--status"]);
  expect(await ask("pawl", "runs", "--status", "p")).toEqual(["pending", "paused"]);
  expect(await ask("pawl", "--url", "x", "graph", "work")).toEqual(["workflows.ts"]);
  expect(await ask("pawl", "help", "ver")).toEqual(["verify"]);
});

test.each(["zsh", "fish"])("the completion script for %s contains every command and option", async (shell) => {
  const script = await newFolder().text("completion", shell);
  for (const { commands } of groups) {
    for (const { name, options } of commands) {
      expect(script).toContain(name);
      for (const option of Object.keys(options))
        expect(script).toContain(shell === "zsh" ? `--${option}[` : `-l ${option} `);
    }
  }
});
