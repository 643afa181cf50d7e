/**
 * What Pawl stores as JSON, as each version of the schema writes it. When a shape changes, a test here fails: raise
 * `storedVersion`, run with PAWL_RECORD_STORED=1, and keep the code that reads the older shape. Existing files are
 * never written again.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { encode } from "../../src/core/encoding/encode.js";
import { storedSchemaVersion } from "../../src/core/run/stored-schema.js";
import { stored } from "./samples.js";

const folder = import.meta.dirname;
const fileOf = (version: number) => join(folder, `version-${version}.json`);

interface Recorded {
  readonly [name: string]: {
    /** The stored text. */
    readonly text: string;
    /** The value as which it is read, encoded. */
    readonly value: string;
  };
}

const read = (file: string): Recorded => JSON.parse(readFileSync(file, "utf8"));
const encoded = (value: unknown) => encode(value, { label: "sample" });

const written: Recorded = Object.fromEntries(
  [...stored].map(([name, { sample }]) => [name, { text: sample.text, value: encoded(sample.value) }]),
);

if (process.env.PAWL_RECORD_STORED === "1" && !existsSync(fileOf(storedSchemaVersion)))
  writeFileSync(fileOf(storedSchemaVersion), `${JSON.stringify(written, null, 2)}\n`);

test("the current version writes the recorded texts", () => {
  expect(written).toEqual(read(fileOf(storedSchemaVersion)));
});

describe.each(readdirSync(folder).filter((name) => name.endsWith(".json")))(
  "%s is read as the recorded values",
  (file) => {
    test.each(Object.entries(read(join(folder, file))))("%s", (name, { text, value }) => {
      expect(JSON.parse(encoded(stored.get(name)?.read(text)))).toEqual(JSON.parse(value));
    });
  },
);
