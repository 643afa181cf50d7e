// Executes programs one after the other in one process, as if each had one of its own, without loading the library again for each.
// A message has the path of a program, its arguments and its environment; the answer has what the program printed and its exit code.
import { pathToFileURL } from "node:url";

let last = Promise.resolve();
let calls = 0;

process.on("message", (call) => {
  last = last.then(() => answer(call));
});
process.on("disconnect", () => process.exit());

async function answer({ id, program, args, env }) {
  const said = { stdout: "", stderr: "" };
  const originals = Object.keys(said).map((name) => [name, process[name].write]);
  for (const name of Object.keys(said))
    process[name].write = (text) => {
      said[name] += text;
      return true;
    };
  process.argv = [process.execPath, program, ...args];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  calls += 1;
  try {
    // Under another name each time, so that it is executed again.
    await import(`${pathToFileURL(program).href}?call=${calls}`);
  } catch (error) {
    said.stderr += error.stack;
    process.exitCode = 1;
  }
  for (const [name, write] of originals) process[name].write = write;
  process.send({ id, ended: { code: process.exitCode ?? 0, signal: null, ...said } });
  process.exitCode = undefined;
}
