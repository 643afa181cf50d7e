/** Every public name and every public member has a comment that editors show to the user. */
import { expect, test } from "vitest";
import { publicNames } from "./public-api.js";

const names = publicNames();

test("the walk through the declarations finds names, members, and members of inline objects", () => {
  const paths = new Set(names.map(({ path }) => path));
  for (const path of [
    "connect",
    "Pawl",
    "Pawl.worker",
    "Client.start",
    "ConnectOptions.migrate",
    "RunHandle.result.timeout",
  ])
    expect(paths).toContain(path);
  expect([...paths].filter((path) => /#|\.private\b|Pawl\.store$/.test(path))).toEqual([]);
});

test("every public name and member has a JSDoc comment", () => {
  const undocumented = names.filter(({ doc }) => doc === "");
  expect(undocumented.map(({ file, path }) => `${file}:${path}`)).toEqual([]);
});
