/** An error of user code: class, message, code, stack, and the chain of its causes. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "../../../api/api.js";
import { Button } from "../../../ui/button.js";
import { CopyButton } from "../../../ui/copy.js";
import { escapeHidden, formatBytes } from "../../../ui/format.js";
import { JsonView } from "../../../ui/json.js";
import css from "./data.module.css";

/** An error as the API writes it. What `redact` returned may lack any field. */
export interface ErrorData {
  readonly name: string;
  readonly message: string;
  readonly stack: string | null;
  readonly code: string | null;
  readonly cause: unknown;
  readonly errors: readonly unknown[];
  readonly data: unknown;
  /** How large the whole error is, if only its beginning was sent; otherwise null. */
  readonly largeBytes: number | null;
}

export function errorDataOf(error: unknown): ErrorData | null {
  if (error === null || error === undefined) return null;
  if (typeof error !== "object")
    return {
      name: "Error",
      message: String(error),
      stack: null,
      code: null,
      cause: undefined,
      errors: [],
      data: undefined,
      largeBytes: null,
    };
  const fields = error as Readonly<Record<string, unknown>>;
  const textOf = (value: unknown, fallback: string) => (typeof value === "string" ? value : fallback);
  return {
    name: textOf(fields.name, "Error"),
    message: textOf(fields.message, ""),
    stack: typeof fields.stack === "string" ? fields.stack : null,
    code: typeof fields.code === "string" || typeof fields.code === "number" ? String(fields.code) : null,
    cause: fields.cause ?? ("value" in fields ? fields.value : undefined),
    errors: Array.isArray(fields.errors) ? fields.errors : [],
    data: fields.data,
    largeBytes: fields.$pawl === "large" && typeof fields.bytes === "number" ? fields.bytes : null,
  };
}

/** The frames alone: the lines before them repeat the class and the message. */
function framesOf(stack: string): string {
  const frames = stack.search(/^\s+at /m);
  return frames < 0 ? stack : stack.slice(frames).replace(/^\n/, "");
}

/** Frames of the runtime and of packages are rarely the cause, so they stand back. */
const isForeign = (frame: string): boolean => /node:|node_modules|<anonymous>\)?$|runNextTicks/.test(frame);

function Stack({ stack }: { readonly stack: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a part that scrolls must be reachable by keyboard
    <pre class={css.stack} tabIndex={0}>
      {framesOf(stack)
        .split("\n")
        .map((frame, index) => (
          <span key={index} class={`${css.frame} ${isForeign(frame) ? css.muted : ""}`}>
            {escapeHidden(frame.trim())}
          </span>
        ))}
    </pre>
  );
}

const maxDepth = 10;
/** Longer messages scroll. */
const longMessage = 400;

export function ErrorView({
  error,
  load,
  depth = 0,
}: {
  readonly error: unknown;
  /** Reads the whole error, if only its beginning was sent. */
  readonly load?: () => Promise<unknown>;
  readonly depth?: number;
}) {
  const [whole, setWhole] = useState<unknown>(undefined);
  const data = errorDataOf(whole ?? error);
  if (data === null) return null;
  const isHidden = data.message === "[hidden]";
  return (
    <div class={css.error}>
      <p class={css.errorName}>
        <strong>{escapeHidden(data.name)}</strong>
        {data.code === null ? null : <code class={css.code}>{escapeHidden(data.code)}</code>}
        {depth > 0 ? null : <CopyButton text={JSON.stringify(whole ?? error, null, 2)} what="the error" />}
      </p>
      {isHidden ? (
        <p class={css.muted}>The message is hidden: your access does not include payloads.</p>
      ) : (
        <pre class={css.message} tabIndex={data.message.length > longMessage ? 0 : undefined}>
          {escapeHidden(data.message)}
        </pre>
      )}
      {data.largeBytes !== null && load !== undefined ? (
        <LoadButton label={`Load the whole error, ${formatBytes(data.largeBytes)}`} load={load} onLoaded={setWhole} />
      ) : null}
      {data.stack === null ? null : <Stack stack={data.stack} />}
      {data.data === undefined ? null : <JsonView value={data.data} what="the fields of the error" />}
      {data.errors.map((one, index) => (
        <Inner key={index} title={`Error ${index + 1} of ${data.errors.length}`} value={one} depth={depth} />
      ))}
      {data.cause === undefined ? null : <Inner title="Caused by" value={data.cause} depth={depth} />}
    </div>
  );
}

function Inner({ title, value, depth }: { readonly title: string; readonly value: unknown; readonly depth: number }) {
  const isError = typeof value === "object" && value !== null && "message" in value;
  return (
    <Cause title={title}>
      {isError && depth < maxDepth ? (
        <ErrorView error={value} depth={depth + 1} />
      ) : (
        <JsonView value={value} what="the cause" />
      )}
    </Cause>
  );
}

function Cause({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <div class={css.cause}>
      <p class={css.muted}>{title}</p>
      {children}
    </div>
  );
}

/** A button that reads something once. */
export function LoadButton<T>({
  label,
  load,
  onLoaded,
}: {
  readonly label: string;
  readonly load: () => Promise<T>;
  readonly onLoaded: (value: T) => void;
}) {
  const [isLoading, setLoading] = useState(false);
  const [failure, setFailure] = useState<string | null>(null);
  const start = async () => {
    setLoading(true);
    setFailure(null);
    try {
      onLoaded(await load());
    } catch (error) {
      setFailure((error as ApiError).message);
    } finally {
      setLoading(false);
    }
  };
  return (
    <>
      <Button icon="download" disabled={isLoading} onClick={() => void start()}>
        {isLoading ? "Loading…" : label}
      </Button>
      {failure === null ? null : <p role="alert">{failure}</p>}
    </>
  );
}
