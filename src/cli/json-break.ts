/** Where a text stops being JSON. `JSON.parse` does not tell in every Node, and what it tells is a position, not a line. */

const space = /[ \t\r\n]*/y;
/** From the space up, but for the quote and the backslash. */
const text = /"(?:[ !#-[\]-\u{10ffff}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy;
const scalar = new RegExp(`${text.source}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?|true|false|null`, "uy");

/** "line 3, column 7"; null: it is JSON. */
export function whereJsonBreaks(json: string): string | null {
  const at = new Scan(json).breaksAt();
  if (at === null) return null;
  const lines = json.slice(0, at).split("\n");
  return `line ${lines.length}, column ${(lines.at(-1) as string).length + 1}`;
}

class Scan {
  readonly #json: string;
  #at = 0;

  constructor(json: string) {
    this.#json = json;
  }

  breaksAt(): number | null {
    /** What has been opened and not closed: what closes it. */
    const open: ("}" | "]")[] = [];
    for (;;) {
      // A value begins here.
      if (this.#take("{")) {
        if (!this.#take("}")) {
          open.push("}");
          if (!this.#key()) return this.#at;
          continue;
        }
      } else if (this.#take("[")) {
        if (!this.#take("]")) {
          open.push("]");
          continue;
        }
      } else if (!this.#match(scalar)) return this.#at;
      // A value has ended here, and perhaps what it is in.
      for (;;) {
        const closing = open.at(-1);
        if (closing === undefined) return this.#isAtEnd() ? null : this.#at;
        if (this.#take(closing)) open.pop();
        else if (!this.#take(",") || (closing === "}" && !this.#key())) return this.#at;
        else break;
      }
    }
  }

  #key(): boolean {
    return this.#match(text) && this.#take(":");
  }

  #take(letter: string): boolean {
    this.#match(space);
    if (this.#json[this.#at] !== letter) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): boolean {
    if (pattern !== space) this.#match(space);
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#json)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  #isAtEnd(): boolean {
    this.#match(space);
    return this.#at === this.#json.length;
  }
}
