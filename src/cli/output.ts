/** Prints the output of a command: text for humans, or JSON for programs. */
import { systemRuntime } from "../runtime/system.js";
import { jsonOf } from "./json.js";
import { inColour, type Paint, plain } from "./paint.js";

/** The members of a stream that are used here. */
export interface TextStream {
  write(text: string): unknown;
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
}

export interface OutputOptions {
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly json: boolean;
  readonly debug: boolean;
  /** The environment variable NO_COLOR. */
  readonly noColor: string | undefined;
  readonly now?: () => number;
}

/** The initial width of most terminals, wide enough for an id and a few words. */
const defaultColumns = 80;

export class Output {
  readonly json: boolean;
  readonly debug: boolean;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly paint: Paint;
  /** The clock for relative times. */
  readonly now: () => number;

  constructor(options: OutputOptions) {
    this.json = options.json;
    this.debug = options.debug;
    this.stdout = options.stdout;
    this.stderr = options.stderr;
    this.now = options.now ?? systemRuntime.now;
    const colourful = options.stdout.isTTY === true && !options.json && (options.noColor ?? "") === "";
    this.paint = colourful ? inColour : plain;
  }

  get isTerminal(): boolean {
    return this.stdout.isTTY === true;
  }

  get columns(): number {
    return (this.isTerminal ? this.stdout.columns : undefined) || defaultColumns;
  }

  /** Prints the value as JSON with --json, otherwise the text. */
  print(value: unknown, text: () => string | readonly string[]): void {
    if (this.json) return void this.stdout.write(`${jsonOf(value, 2)}\n`);
    for (const line of [text()].flat()) this.line(line);
  }

  line(text = ""): void {
    this.stdout.write(`${text}\n`);
  }

  /** Prints one event of a stream of events, as a line of JSON or of text. */
  event(value: unknown, text: () => string): void {
    this.line(this.json ? jsonOf(value) : text());
  }

  /** Prints a remark on stderr, so that it does not end up in a pipe. */
  note(text: string): void {
    this.stderr.write(`${text}\n`);
  }
}
