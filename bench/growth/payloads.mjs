// Payloads: what do large inputs and outputs cost? Ten steps a run, as in W2; the input and every step's output have the
// same size. The text is random, so that no database makes it smaller.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { connect } from "pawl";
import { asNumber, printTable } from "../report.mjs";
import { summarise } from "./figures.mjs";
import { measureWork } from "./work.mjs";

const steps = 10;
const sizes = [
  { label: "100 B", bytes: 100, runs: { full: 1000, quick: 200 } },
  { label: "10 kB", bytes: 10_000, runs: { full: 200, quick: 50 } },
  { label: "1 MB", bytes: 1_000_000, runs: { full: 6, quick: 3 } },
];

const figures = {
  stepsPerSecond: "steps / s",
  megabytesPerSecond: "MB / s",
  logBytes: "log bytes / step *",
  logShare: "log bytes / payload byte",
  nodeUs: "µs CPU, Node",
  serverUs: "µs CPU, server",
};

export const payloads = {
  id: "payloads",
  title: "Payloads",
  rounds: { full: 3, quick: 1 },

  async measure({ storeName, openDatabase, size, rounds }) {
    const database = await openDatabase(storeName);
    const pawl = await connect(database.url);
    try {
      await measurePayload({ pawl, database }, sizes[0].bytes, sizes[0].runs.quick);
      const measured = sizes.map((one) => ({ ...one, rows: [] }));
      for (let round = 0; round < rounds; round += 1) {
        for (const { bytes, runs, rows } of measured)
          rows.push(await measurePayload({ pawl, database }, bytes, runs[size]));
      }
      return measured.map(({ label, bytes, rows }) => ({ label, bytes, ...summarise(rows, Object.keys(figures)) }));
    } finally {
      await pawl.close();
      await database.close();
    }
  },

  print(rows) {
    const known = Object.keys(figures).filter((name) => rows[0][name] !== undefined);
    printTable(
      ["", ...known.map((name) => figures[name])],
      rows.map((row) => [row.label, ...known.map((name) => asNumber(row[name].median))]),
    );
    console.log(
      "  * of the whole server: only right when no other client uses it; SQLite: all that the process writes",
    );
  },
};

async function measurePayload({ pawl, database }, bytes, runs) {
  const payload = randomBytes(bytes).toString("base64").slice(0, bytes);
  const before = await logBytes(database);
  const { ms, nodeUs, serverUs } = await measureWork({ pawl, database }, { steps, runs, input: { payload }, payload });
  const written = (await logBytes(database)) - before;
  const given = runs * (steps + 1) * bytes;
  return {
    stepsPerSecond: (1000 * runs * steps) / ms,
    megabytesPerSecond: given / 1e6 / (ms / 1000),
    logBytes: written / (runs * steps),
    logShare: written / given,
    nodeUs: nodeUs / (runs * steps),
    serverUs: serverUs === undefined ? undefined : serverUs / (runs * steps),
  };
}

/** SQLite has no counter. What the process writes is its log, and what is copied from there into the file. */
async function logBytes(database) {
  return (await database.usage()).logBytes ?? Number(/wchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))[1]);
}
