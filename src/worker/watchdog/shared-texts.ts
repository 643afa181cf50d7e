/**
 * A table of texts in shared memory. Each text has a place (an index), by which another thread reads it. Finding a text that
 * is already in the table takes one lookup; when the table is full, a new text replaces the oldest one.
 */
export interface SharedTextsSize {
  /** How many texts the table holds. */
  readonly count: number;
  /** The maximum size of one text; longer texts are truncated. */
  readonly bytes: number;
}

const lengthBytes = 4;

export const memoryFor = ({ count, bytes }: SharedTextsSize): number => count * (lengthBytes + bytes);

export class SharedTexts {
  readonly #size: SharedTextsSize;
  readonly #lengths: Int32Array;
  readonly #bytes: Buffer;
  readonly #places = new Map<string, number>();
  readonly #texts: string[] = [];
  #nextPlace = 0;

  constructor(memory: SharedArrayBuffer, offset: number, size: SharedTextsSize) {
    this.#size = size;
    this.#lengths = new Int32Array(memory, offset, size.count);
    this.#bytes = Buffer.from(memory, offset + size.count * lengthBytes, size.count * size.bytes);
  }

  /** Returns the place of a text, and adds the text to the table if it is missing. */
  placeOf(text: string): number {
    return this.#places.get(text) ?? this.#add(text);
  }

  at(place: number): string {
    const from = place * this.#size.bytes;
    return this.#bytes.toString("utf8", from, from + (this.#lengths[place] ?? 0));
  }

  #add(text: string): number {
    const { count, bytes } = this.#size;
    const place = this.#nextPlace;
    this.#nextPlace = (place + 1) % count;
    const replacedText = this.#texts[place];
    if (replacedText !== undefined) this.#places.delete(replacedText);
    this.#texts[place] = text;
    this.#places.set(text, place);
    this.#lengths[place] = this.#bytes.write(text, place * bytes, bytes, "utf8");
    return place;
  }
}
