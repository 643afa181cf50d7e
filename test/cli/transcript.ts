/**
 * Pages that show terminal output: the commands of a page are run again, and their output is compared with the page.
 */

const block = /^```console\n([\s\S]*?)^```$/gm;
const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[78][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g;

export interface ShownCommand {
  /** The command without the leading "$ ". */
  readonly command: string;
  /** The output that the page shows. */
  readonly output: string;
}

/** The commands of a page, in order, each with the output shown for it. */
export function commandsOf(page: string): ShownCommand[] {
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

/** Replaces what differs from run to run: times, bars, machines and spaces. Ids are kept. */
export function normalizeOutput(text: string): string {
  return (
    text
      .replace(/\b\d+(\.\d+)?(ms|s)\b/g, "<time>")
      .replace(/<time> ago|in <time>|\bnow\b|\bin \d+(h|m| days?)\b|\b[\d,]+( days?|h|m) ago\b/g, "<when>")
      .replace(/\b\d\d:\d\d(:\d\d)?\b/g, "<clock>")
      .replace(/\b\d{1,2} [A-Z][a-z]{2}( \d{4})? <clock>/g, "<clock>")
      // Longer numbers leave less room for the rest of the line.
      .replace(/\{"ms":.*$/gm, "<data>")
      .replace(/ *\{"startedAt":\d+\}$/gm, "")
      .replace(/[█░]+/g, "█")
      .replace(/^(\S+ +live) .*$/gm, "$1 <machine>")
      .replace(/^(ok +node +)\S+/gm, "$1<version>")
      .replace(/^(ok +driver +)\S+/gm, "$1<driver>")
      // A resumed run may already be executing again.
      .replace(/ is (waiting|running; it continues)\.$/gm, " is <resumed>.")
      // Newer versions of Node have this module built in.
      .replace(/^( +npm install pawl).*\n( +npm install --save-dev esbuild\n)?/gm, "$1\n")
      .replace(/ +/g, " ")
  );
}

/** Maps the ids of the page to the ids of this run, in the order in which they appear. */
export class Ids {
  readonly #ofPage: readonly string[];
  readonly #made: string[] = [];

  constructor(commands: readonly ShownCommand[]) {
    this.#ofPage = [...new Set(commands.flatMap(({ command, output }) => `${command}${output}`.match(uuid) ?? []))];
  }

  note(text: string): void {
    for (const id of text.match(uuid) ?? []) if (!this.#made.includes(id)) this.#made.push(id);
  }

  /** Replaces ids in a command of the page. */
  toMade = (text: string) => text.replace(uuid, (id) => this.#made[this.#ofPage.indexOf(id)] ?? id);

  /** Replaces ids in the output of a command. */
  toPage = (text: string) => text.replace(uuid, (id) => this.#ofPage[this.#made.indexOf(id)] ?? id);
}
