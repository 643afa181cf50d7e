/** Where everything that a command prints goes: text for people, or JSON for programs. */
import { systemRuntime } from "../runtime/system.js";
import { jsonOf } from "./json.js";
import { inColour, type Paint, plain } from "./paint.js";

/** The part of a stream that is used. */
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
  /** NO_COLOR of the environment. */
  readonly noColor: string | undefined;
  readonly now?: () => number;
}

/** Wide enough for an id and a few words, and what most terminals begin with. */
const defaultColumns = 80;

export class Output {
  readonly json: boolean;
  readonly debug: boolean;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly paint: Paint;
  /** For everything that is said relative to now. */
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

  /** The value, if JSON is wanted; otherwise what people read. */
  print(value: unknown, text: () => string | readonly string[]): void {
    if (this.json) return void this.stdout.write(`${jsonOf(value, 2)}\n`);
    for (const line of [text()].flat()) this.line(line);
  }

  line(text = ""): void {
    this.stdout.write(`${text}\n`);
  }

  /** One of many: a line of JSON, or a line for people. */
  event(value: unknown, text: () => string): void {
    this.line(this.json ? jsonOf(value) : text());
  }

  /** Beside what was asked for: on stderr, so that it gets into nobody's pipe. */
  note(text: string): void {
    this.stderr.write(`${text}\n`);
  }
}
