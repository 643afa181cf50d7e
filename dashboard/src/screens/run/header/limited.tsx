/** Which limit a run waits for, which runs hold its slots, and its place in the line. */
import type { Answer } from "../../../api/api.js";
import { href, runHref } from "../../../router/router.js";
import { Id } from "../../../ui/copy.js";
import { escapeHidden, formatCount } from "../../../ui/format.js";
import { Time } from "../../../ui/time.js";

export type LimitedRun = NonNullable<Answer<"explainRun">["limited"]>;

const maxHolders = 3;
/** The server counts up to this many. */
const maxWaiting = 1_000;

export function Limited({ limited }: { readonly limited: LimitedRun }) {
  const { limit, key, step, inUse, inForce, holders, earliestAt, override } = limited;
  const address = `/limits/${encodeURIComponent(limit)}${key === "" ? "" : `?key=${encodeURIComponent(key)}`}`;
  const shown = holders.slice(0, maxHolders);
  const hidden = inUse - shown.length;
  return (
    <>
      {step === null ? "It waits" : `Its step “${escapeHidden(step)}” waits`} for{" "}
      {earliestAt === null ? "a free slot" : "the rate"} of the limit <a href={href(address)}>{escapeHidden(limit)}</a>
      {key === "" ? "" : `, key “${escapeHidden(key)}”`}.{" "}
      {earliestAt === null ? (
        <>
          {formatCount(inUse)}
          {inForce.concurrency === null ? "" : ` of ${formatCount(inForce.concurrency)}`} in use
          {shown.length === 0 ? "" : ", by "}
          {shown.map(({ runId }, index) => (
            <span key={runId}>
              {index === 0 ? "" : ", "}
              <Id id={runId} to={runHref(runId)} />
            </span>
          ))}
          {hidden > 0 && shown.length > 0 ? ` and ${formatCount(hidden)} more` : ""}.
        </>
      ) : (
        <>
          It begins <Time at={earliestAt} /> at the earliest.
        </>
      )}
      {placeText(limited)}
      {override === null ? "" : " The limit is overridden."}
    </>
  );
}

function placeText({ position, waiting }: LimitedRun): string {
  const all = waiting >= maxWaiting ? `${formatCount(maxWaiting)} or more` : formatCount(waiting);
  if (position === null) return ` More than 500 of the ${all} that wait come before it.`;
  return position === 1 ? " It is next." : ` It is number ${formatCount(position)} of ${all} that wait.`;
}
