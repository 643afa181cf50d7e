/** Every public name and every public member has a comment that editors show to the user. */
import { expect, test } from "vitest";
import { membersIn, publicNames } from "./public-api.js";

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

test("members without a comment are found, private ones and further overloads are not", () => {
  const members = membersIn(
    "class",
    "Example",
    `export declare class Example<T extends { readonly id: string; }> {
    #private;
    private constructor();
    /** Documented. */
    readonly kind: "a" | "b";
    readonly size: number;
    /** The first overload has a comment. */
    find(id: string): T | null;
    find(filter: { readonly limit?: number; }): readonly T[];
    map({ id }: T): { [K in keyof T]: string; };
    get last(): T;
}`,
  );
  const paths = members.filter(({ comment }) => comment === null).map(({ path }) => path);
  expect(paths).toEqual(["Example.size", "Example.find.limit", "Example.map", "Example.last"]);
});

test("every public name and member has a JSDoc comment", () => {
  const undocumented = names.filter(({ doc }) => doc === "");
  expect(undocumented.map(({ file, path }) => `${file}:${path}`)).toEqual([]);
});
