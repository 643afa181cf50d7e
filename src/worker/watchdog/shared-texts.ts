/**
 * Texts in memory that another thread can read, each known by the number of its place. A text that is there already costs a
 * look-up; when all places are taken, the one that was written longest ago makes room.
 */
export interface SharedTextsSize {
  readonly count: number;
  /** Of one text; what is longer is cut. */
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
