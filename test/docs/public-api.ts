/** The public names and members of the package, as its declarations (dist/**\/*.d.ts) have them. */
// @ts-expect-error: a script, without types
import * as declarations from "../../scripts/declarations.mjs";

export interface PublicName {
  /** The entry point that exports it: "pawl", "pawl/testing" … */
  readonly entry: string;
  /** The source file that declares it. */
  readonly file: string;
  /** "RunHandle", "RunHandle.result", "RunHandle.result.timeout" */
  readonly path: string;
  /** What the declaration is that it belongs to. */
  readonly kind: "function" | "class" | "const" | "interface" | "type";
  /** The text of its JSDoc comment; empty if it has none. */
  readonly doc: string;
}

interface Member {
  readonly path: string;
  readonly comment: string | null;
}

/** The members of a class or an interface, given its text. */
export const membersIn = (kind: "class" | "interface", name: string, text: string): readonly Member[] =>
  declarations.membersOf({ name, kind, overloads: [{ text, comment: null }] });

export function publicNames(): PublicName[] {
  const names: (Omit<PublicName, "doc"> & { readonly comment: string | null })[] = declarations.publicApi();
  return names.map(({ comment, ...name }) => ({
    ...name,
    doc: comment === null ? "" : declarations.commentText(comment),
  }));
}
