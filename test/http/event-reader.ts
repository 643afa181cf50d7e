/** Reads server-sent events from a body, as a browser does: whole events only, with the id of the last one. */

export interface ServerEvent {
  readonly id: number | null;
  readonly event: string;
  readonly data: any;
}

/** Splits text into events; what is after the last empty line is kept for the next text. */
export class EventParser {
  #rest = "";
  /** The comments, such as heartbeats. */
  readonly comments: string[] = [];

  add(text: string): ServerEvent[] {
    const blocks = (this.#rest + text).split("\n\n");
    this.#rest = blocks.pop() as string;
    return blocks.flatMap((block) => this.#read(block));
  }

  #read(block: string): ServerEvent[] {
    const lines = block.split("\n");
    this.comments.push(...lines.filter((line) => line.startsWith(":")));
    const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const data = field("data");
    if (data === undefined) return [];
    const id = field("id");
    return [{ id: id === undefined ? null : Number(id), event: field("event") ?? "message", data: JSON.parse(data) }];
  }
}

/** The events of a body, until `isEnough` of them says so or the body ends. Then the body is canceled. */
export async function readEvents(
  body: ReadableStream<Uint8Array> | null,
  isEnough: (events: readonly ServerEvent[]) => boolean = () => false,
): Promise<ServerEvent[]> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  const events: ServerEvent[] = [];
  for (;;) {
    if (isEnough(events)) break;
    const { done, value } = await reader.read();
    if (done) return events;
    events.push(...parser.add(decoder.decode(value, { stream: true })));
  }
  await reader.cancel();
  return events;
}
