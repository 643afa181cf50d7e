/** Pages that show what a terminal shows: the commands of a page are run again, and what they print now is compared. */

const block = /^```console\n([\s\S]*?)^```$/gm;
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export interface Shown {
  /** Without the "$ ". */
  readonly command: string;
  /** What the page says that it prints. */
  readonly output: string;
}

/** The commands of a page, in order, each with what is shown of its output. */
export function commandsOf(page: string): Shown[] {
  return [...page.matchAll(block)].flatMap(([, text]) =>
    (text as string)
      .split(/^\$ /m)
      .slice(1)
      .map((part) => {
        const [command, ...lines] = part.split("\n");
        return { command: command as string, output: lines.join("\n") };
      }),
  );
}

/** The page with these outputs, given in the order of its commands. */
export function withOutputs(page: string, outputs: readonly string[]): string {
  let next = 0;
  return page.replace(block, (_whole, text: string) => {
    const commands = commandsOf(`\`\`\`console\n${text}\`\`\``);
    const lines = commands.map(({ command }) => `$ ${command}\n${outputs[next++] ?? ""}`);
    return `\`\`\`console\n${lines.join("")}\`\`\``;
  });
}

/** What differs from one time to the next is made the same: times, bars, machines, spaces. Ids are not. */
export function withoutChance(text: string): string {
  return (
    text
      .replace(/\b\d+(\.\d+)?(ms|s)\b/g, "<time>")
      .replace(/<time> ago|in <time>|\bnow\b/g, "<when>")
      .replace(/\b\d\d:\d\d(:\d\d)?\b/g, "<clock>")
      .replace(/\b\d{1,2} [A-Z][a-z]{2}( \d{4})? <clock>/g, "<clock>")
      // More digits there, and less of the rest has room.
      .replace(/\{"ms":.*$/gm, "<data>")
      .replace(/ *\{"startedAt":\d+\}$/gm, "")
      .replace(/[█░]+/g, "█")
      .replace(/^(\S+ +live) .*$/gm, "$1 <machine>")
      .replace(/^(ok +node +)\S+/gm, "$1<version>")
      .replace(/^(ok +driver +)\S+/gm, "$1<driver>")
      // A run that is resumed may be with its worker already, or again.
      .replace(/ is (waiting|running; it continues)\.$/gm, " is <resumed>.")
      // Newer Nodes bring their own.
      .replace(/^( +npm install pawl).*\n( +npm install --save-dev esbuild\n)?/gm, "$1\n")
      .replace(/ +/g, " ")
  );
}

/** Ids of a page stand for those that are made when it is run, in the order in which they appear. */
export class Ids {
  readonly #ofPage: readonly string[];
  readonly #made: string[] = [];

  constructor(commands: readonly Shown[]) {
    this.#ofPage = [...new Set(commands.flatMap(({ command, output }) => `${command}${output}`.match(uuid) ?? []))];
  }

  note(text: string): void {
    for (const id of text.match(uuid) ?? []) if (!this.#made.includes(id)) this.#made.push(id);
  }

  /** In a command of the page. */
  toMade = (text: string) => text.replace(uuid, (id) => this.#made[this.#ofPage.indexOf(id)] ?? id);

  /** In what a command printed. */
  toPage = (text: string) => text.replace(uuid, (id) => this.#ofPage[this.#made.indexOf(id)] ?? id);
}
