// Runs commands of the built program one after the other in one process: a process per command would take a quarter of
// a second, most of it for loading. Signals, standard input and exit codes are tested with real processes.
//
//   node host.mjs [the program of an installed package]
const { runProgram } = await import(process.argv[2] ?? "../../dist/cli/program.js");

const inherited = { ...process.env };
let last = Promise.resolve();

process.on("message", (call) => {
  last = last.then(() => answer(call));
});
process.on("disconnect", () => process.exit());
process.send("ready");

async function answer({ id, cwd, args, env }) {
  const said = { stdout: "", stderr: "" };
  const stream = (name) => ({
    write: (text) => {
      said[name] += text;
    },
  });
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) if (!(name in inherited)) delete process.env[name];
  Object.assign(process.env, inherited, env);
  const code = await runProgram(args, { stdout: stream("stdout"), stderr: stream("stderr"), env: { ...process.env } });
  process.send({ id, answer: { code, ...said } });
}
