/** What really happened to the items of a resumable step, as noted in a file by the process that handled each item. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface DoneItem {
  readonly pid: number;
  readonly item: number;
}

/** All lines have the same length, so that the size of the file gives their number. */
const lineBytes = 20;

export class ItemLedger {
  readonly #folder = mkdtempSync(join(tmpdir(), "pawl-items-"));
  readonly file = join(this.#folder, "items");

  constructor() {
    writeFileSync(this.file, "");
  }

  /** How many items were processed so far, counting repeats. */
  get length(): number {
    return Math.floor(statSync(this.file).size / lineBytes);
  }

  /** In the order in which they were processed. */
  items(): DoneItem[] {
    const lines = readFileSync(this.file, "utf8").split("\n").slice(0, -1);
    return lines.map((line) => ({ pid: Number(line.slice(0, 9)), item: Number(line.slice(10)) }));
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export interface ItemFindings {
  readonly problems: string[];
  /** How many items were processed a second time. */
  readonly repeats: number;
  /** How many processes took part. */
  readonly processes: number;
}

/**
 * Every item was processed, in order. A process that takes over starts with the item after the last processed one, or
 * with that one if its checkpoint was lost; nothing else may be repeated.
 */
export function checkItems(done: readonly DoneItem[], count: number): ItemFindings {
  const problems: string[] = [];
  let repeats = 0;
  let last: DoneItem | null = null;
  for (const one of done) {
    const next: number = last === null ? 0 : last.item + 1;
    if (last !== null && one.pid !== last.pid && one.item === last.item) repeats += 1;
    else if (one.item !== next) problems.push(`After item ${next - 1} comes item ${one.item}, done by ${one.pid}.`);
    last = one;
  }
  if (last?.item !== count - 1) problems.push(`The last item is ${last?.item}, not ${count - 1}.`);
  return { problems, repeats, processes: new Set(done.map(({ pid }) => pid)).size };
}
