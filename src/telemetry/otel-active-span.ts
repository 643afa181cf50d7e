/**
 * The span of a step while its code runs: spans that the code starts become its children. The real span is created when
 * the step is over, with the same ids; attributes and events that the code sets on this span are buffered for the real
 * one.
 */

import type {
  Attributes,
  AttributeValue,
  Exception,
  Link,
  Span,
  SpanContext,
  SpanStatus,
  TimeInput,
} from "@opentelemetry/api";
import type { Runtime } from "../runtime/runtime.js";

/** The limit is higher than what any provider keeps by default, and it bounds the memory of code that never ends. */
const maxBufferedCalls = 1_000;

export class ActiveSpan implements Span {
  readonly #context: SpanContext;
  readonly #runtime: Runtime;
  readonly #bufferedCalls: ((span: Span) => void)[] = [];
  #hasEnded = false;

  constructor(context: SpanContext, runtime: Runtime) {
    this.#context = context;
    this.#runtime = runtime;
  }

  /** Makes the buffered calls on the real span; later calls are ignored. */
  replayOnto(span: Span): void {
    this.#hasEnded = true;
    for (const call of this.#bufferedCalls) call(span);
  }

  spanContext(): SpanContext {
    return this.#context;
  }

  isRecording(): boolean {
    return !this.#hasEnded;
  }

  setAttribute(key: string, value: AttributeValue): this {
    return this.#buffer((span) => span.setAttribute(key, value));
  }

  setAttributes(attributes: Attributes): this {
    return this.#buffer((span) => span.setAttributes(attributes));
  }

  addEvent(name: string, attributesOrTime?: Attributes | TimeInput, time?: TimeInput): this {
    const isTime =
      typeof attributesOrTime === "number" || Array.isArray(attributesOrTime) || attributesOrTime instanceof Date;
    const attributes = isTime ? {} : (attributesOrTime as Attributes | undefined);
    const at = isTime ? (attributesOrTime as TimeInput) : (time ?? new Date(this.#runtime.now()));
    return this.#buffer((span) => span.addEvent(name, attributes, at));
  }

  addLink(link: Link): this {
    return this.#buffer((span) => span.addLink(link));
  }

  addLinks(links: Link[]): this {
    return this.#buffer((span) => span.addLinks(links));
  }

  setStatus(status: SpanStatus): this {
    return this.#buffer((span) => span.setStatus(status));
  }

  updateName(name: string): this {
    return this.#buffer((span) => span.updateName(name));
  }

  recordException(exception: Exception, time: TimeInput = new Date(this.#runtime.now())): void {
    this.#buffer((span) => span.recordException(exception, time));
  }

  /** Does nothing: the span ends with its step. */
  end(): void {}

  #buffer(call: (span: Span) => void): this {
    if (!this.#hasEnded && this.#bufferedCalls.length < maxBufferedCalls) this.#bufferedCalls.push(call);
    return this;
  }
}
