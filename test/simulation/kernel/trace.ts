/** What happened in a world, as lines of text; by default only their hash is kept, which tells whether two worlds were the same. */
export class Trace {
  readonly #lines: string[] | null;
  #hash = 0x811c9dc5;

  constructor({ keepsLines = false }: { readonly keepsLines?: boolean } = {}) {
    this.#lines = keepsLines ? [] : null;
  }

  add(at: number, process: string, text: string): void {
    let hash = Math.imul(this.#hash ^ Math.floor(at * 1_000), 0x01000193);
    for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    for (let index = 0; index < process.length; index += 1)
      hash = Math.imul(hash ^ process.charCodeAt(index), 0x01000193);
    this.#hash = hash;
    this.#lines?.push(`${at.toFixed(3).padStart(12)}  ${process.padEnd(8)}  ${text}`);
  }

  get hash(): string {
    return (this.#hash >>> 0).toString(16).padStart(8, "0");
  }

  get lines(): readonly string[] {
    return this.#lines ?? [];
  }
}
