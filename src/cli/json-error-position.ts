/** Finds where a text stops being JSON. `JSON.parse` reports that only in some Node versions, and as an offset instead of a line. */

const whitespacePattern = /[ \t\r\n]*/y;
/** A string contains every character from the space up, except the quote and the backslash, and escapes. */
const stringPattern = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const scalar = new RegExp(
  `${stringPattern.source}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?|true|false|null`,
  "uy",
);

/** Returns the position of the error, such as "line 3, column 7", or null if the text is JSON. */
export function findJsonErrorPosition(json: string): string | null {
  const offset = new JsonScanner(json).findErrorOffset();
  if (offset === null) return null;
  const lines = json.slice(0, offset).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1) as string).length + 1}`;
}

class JsonScanner {
  readonly #json: string;
  #offset = 0;

  constructor(json: string) {
    this.#json = json;
  }

  findErrorOffset(): number | null {
    /** The closing brackets of the objects and arrays that are open, the innermost last. */
    const open: ("}" | "]")[] = [];
    for (;;) {
      // A value begins here.
      if (this.#consume("{")) {
        if (!this.#consume("}")) {
          open.push("}");
          if (!this.#consumeKey()) return this.#offset;
          continue;
        }
      } else if (this.#consume("[")) {
        if (!this.#consume("]")) {
          open.push("]");
          continue;
        }
      } else if (!this.#match(scalar)) return this.#offset;
      // A value has ended here, and perhaps the objects and arrays around it.
      for (;;) {
        const closing = open.at(-1);
        if (closing === undefined) return this.#isAtEnd() ? null : this.#offset;
        if (this.#consume(closing)) open.pop();
        else if (!this.#consume(",") || (closing === "}" && !this.#consumeKey())) return this.#offset;
        else break;
      }
    }
  }

  #consumeKey(): boolean {
    return this.#match(stringPattern) && this.#consume(":");
  }

  #consume(letter: string): boolean {
    this.#match(whitespacePattern);
    if (this.#json[this.#offset] !== letter) return false;
    this.#offset += 1;
    return true;
  }

  #match(pattern: RegExp): boolean {
    if (pattern !== whitespacePattern) this.#match(whitespacePattern);
    pattern.lastIndex = this.#offset;
    if (!pattern.test(this.#json)) return false;
    this.#offset = pattern.lastIndex;
    return true;
  }

  #isAtEnd(): boolean {
    this.#match(whitespacePattern);
    return this.#offset === this.#json.length;
  }
}
