/** Divides the text of a search into words, and writes words back as text. */
export interface Token {
  /** What stands before the colon, in lower case; null: the word has none. */
  readonly name: string | null;
  readonly value: string;
  /** Where the word stands in the text. */
  readonly start: number;
  readonly end: number;
  /** Where the value begins, behind the colon. */
  readonly valueStart: number;
  /** Whether the quotes of the value are closed, or there are none. */
  readonly isClosed: boolean;
}

const name = /([a-z][a-z_-]*):/iy;

export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let position = 0;
  while (position < text.length) {
    if (/\s/.test(text[position] as string)) {
      position += 1;
      continue;
    }
    const token = readToken(text, position);
    tokens.push(token);
    position = token.end;
  }
  return tokens;
}

function readToken(text: string, start: number): Token {
  name.lastIndex = start;
  const match = name.exec(text);
  const valueStart = match === null ? start : name.lastIndex;
  let value = "";
  let isQuoted = false;
  let position = valueStart;
  for (; position < text.length; position += 1) {
    const character = text[position] as string;
    if (isQuoted && character === "\\" && /["\\]/.test(text[position + 1] ?? "")) {
      position += 1;
      value += text[position];
    } else if (character === '"') isQuoted = !isQuoted;
    else if (!isQuoted && /\s/.test(character)) break;
    else value += character;
  }
  const end = position;
  return { name: match?.[1]?.toLowerCase() ?? null, value, start, end, valueStart, isClosed: !isQuoted };
}

/** A value as it has to be written in a search. */
export const quote = (value: string): string =>
  value === "" || /[\s"]/.test(value) ? `"${value.replace(/["\\]/g, "\\$&")}"` : value;
