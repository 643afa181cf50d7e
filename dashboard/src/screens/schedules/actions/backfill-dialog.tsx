import { useState } from "preact/hooks";
import { type Answer, type ApiError, post, schedulePath } from "../../../api/api.js";
import { databaseNow } from "../../../shell/me.js";
import { Button } from "../../../ui/button.js";
import { TextField } from "../../../ui/field.js";
import { escapeHidden, formatCount, plural } from "../../../ui/format.js";
import { Note } from "../../../ui/page.js";
import { showToast } from "../../../ui/toast.js";
import { backfillEquivalent } from "../equivalents.js";
import { instantOfLocal, isKnownZone, zoneFieldValue, zoneText } from "../zone-time.js";
import css from "./actions.module.css";
import type { ScheduleDialogProps } from "./dialog-props.js";
import { ScheduleDialog } from "./schedule-dialog.js";

type Plan = Answer<"backfillSchedule">;
interface Range {
  readonly from: string;
  readonly to: string;
}

const dayMs = 86_400_000;
/** A longer list is cut; its first and last instants tell what it contains. */
const maxListed = 100;

/** Asks first what would run. Only what was shown can be confirmed. */
export function BackfillDialog(props: ScheduleDialogProps) {
  const { name, timeZone } = props.schedule;
  const zone = isKnownZone(timeZone) ? timeZone : "UTC";
  const [from, setFrom] = useState(() => `${zoneFieldValue(zone, databaseNow() - 7 * dayMs).slice(0, 10)}T00:00`);
  const [to, setTo] = useState(() => zoneFieldValue(zone, databaseNow()));
  const range = rangeOf(zone, from, to);
  const preview = usePreview(name);
  const { plan } = preview;
  const count = plan?.instants.length ?? 0;
  const change = (set: (value: string) => void) => (event: { readonly currentTarget: HTMLInputElement }) => {
    set(event.currentTarget.value);
    preview.forget();
  };
  const ask = () => (range === null ? undefined : void preview.ask(range));
  return (
    <ScheduleDialog
      {...props}
      verb="Backfill"
      label={count === 0 ? "Start the runs" : `Start ${plural(count, "run")}`}
      icon="retry"
      isComplete={range !== null && count > 0}
      reasonHint="Kept in the ledger, with your name if the server knows it."
      equivalent={backfillEquivalent(name, range ?? { from: "…", to: "…" })}
      send={async (reason) => {
        const { instants } = await post<Plan>(schedulePath(name, "backfill"), { ...range, ...reason });
        showToast(
          instants.length === 0
            ? "All of them have run meanwhile, so nothing was started."
            : `${plural(instants.length, "run")} of the backfill will start, one after another.`,
        );
      }}
    >
      <p>
        Past occurrences that have not run start now, one after another, the oldest first, beside the regular ones. What
        has run is left out.
      </p>
      <div class={css.range}>
        <TextField
          label="From"
          type="datetime-local"
          value={from}
          hint={escapeHidden(zone)}
          error={instantOfLocal(zone, from) === null ? "This is no date with a time." : null}
          onInput={change(setFrom)}
        />
        <TextField
          label="To"
          type="datetime-local"
          value={to}
          hint={escapeHidden(zone)}
          error={
            instantOfLocal(zone, to) === null
              ? "This is no date with a time."
              : range === null && instantOfLocal(zone, from) !== null
                ? "The end is before the beginning."
                : null
          }
          onInput={change(setTo)}
        />
      </div>
      <div class={css.preview}>
        <Button icon="search" disabled={range === null || preview.isAsking} onClick={ask}>
          {preview.isAsking ? "Asking…" : "Preview"}
        </Button>
        {preview.error === null ? null : (
          <div role="alert">
            <Note tone="failed">{escapeHidden(preview.error.message)}</Note>
          </div>
        )}
        <div role="status" data-part="preview">
          {plan === null ? null : <Preview plan={plan} zone={zone} />}
        </div>
      </div>
    </ScheduleDialog>
  );
}

/** null: the fields contain no range. */
function rangeOf(zone: string, from: string, to: string): Range | null {
  const first = instantOfLocal(zone, from);
  const last = instantOfLocal(zone, to);
  if (first === null || last === null || last < first) return null;
  return { from: new Date(first).toISOString(), to: new Date(last).toISOString() };
}

function usePreview(name: string) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const [isAsking, setAsking] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const forget = () => {
    setPlan(null);
    setError(null);
  };
  const ask = async (range: Range) => {
    forget();
    setAsking(true);
    try {
      setPlan(await post<Plan>(schedulePath(name, "backfill"), { ...range, dryRun: true }));
    } catch (failure) {
      setError(failure as ApiError);
    } finally {
      setAsking(false);
    }
  };
  return { plan, isAsking, error, forget, ask };
}

function Preview({ plan: { instants, alreadyDone }, zone }: { readonly plan: Plan; readonly zone: string }) {
  const done = alreadyDone === 0 ? "" : `${formatCount(alreadyDone)} ${alreadyDone === 1 ? "has" : "have"} run already`;
  if (instants.length === 0)
    return (
      <Note tone="pending">
        {alreadyDone === 0 ? "No occurrence lies in this time." : `Nothing is left to run: ${done}.`}
      </Note>
    );
  return (
    <>
      <Note tone="running">
        <strong>{plural(instants.length, "run")}</strong> would start
        {done === "" ? "." : `; ${done} and ${alreadyDone === 1 ? "is" : "are"} left out.`}
      </Note>
      <Instants instants={instants} zone={zone} />
    </>
  );
}

function Instants({ instants, zone }: { readonly instants: readonly string[]; readonly zone: string }) {
  const shown = instants.length <= maxListed ? instants : instants.slice(0, maxListed - 1);
  const hidden = instants.length - shown.length - 1;
  const last = instants.at(-1) as string;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls must be reached by the keyboard
    <ol class={css.instants} aria-label="Occurrences that would run" tabIndex={0}>
      {shown.map((at) => (
        <li key={at}>{zoneText(zone, Date.parse(at))}</li>
      ))}
      {hidden < 0 ? null : (
        <>
          {hidden === 0 ? null : <li class={css.more}>… {formatCount(hidden)} more …</li>}
          <li>{zoneText(zone, Date.parse(last))}</li>
        </>
      )}
    </ol>
  );
}
