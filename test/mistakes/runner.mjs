// Runs each of the named compiled mistakes, one after the other, and prints the answer to each as JSON.
import { connect } from "pawl";

const said = {};
for (const name of process.argv.slice(2)) {
  const silent = { debug() {}, info() {}, warn() {}, error() {} };
  const pawl = await connect("memory:", { logger: silent });
  try {
    const { default: mistake } = await import(new URL(`./out/${name}.js`, import.meta.url));
    const answer = await mistake(pawl);
    said[name] = typeof answer === "string" ? { sentence: answer } : { sentence: null };
  } catch (error) {
    said[name] = { sentence: error.message, name: error.name, code: error.code ?? null };
  }
}
process.stdout.write(JSON.stringify(said));
process.exit(0);
