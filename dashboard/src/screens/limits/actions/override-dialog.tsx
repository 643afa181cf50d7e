import { useState } from "preact/hooks";
import { ConfirmDialog } from "../../../actions/confirm-dialog.js";
import { limitPath, put } from "../../../api/api.js";
import { databaseNow } from "../../../shell/me.js";
import { Select, TextField } from "../../../ui/field.js";
import { formatCount, plural } from "../../../ui/format.js";
import { Note } from "../../../ui/page.js";
import { showToast } from "../../../ui/toast.js";
import { type Override, overrideEquivalent } from "../equivalents.js";
import { allowances, type Limit } from "../limit.js";
import css from "../limit.module.css";

/** What the fields ask for: as in the code, a number, or no limit at all. */
type Choice = "code" | "value" | "any";

const choices = [
  ["code", "As in the code"],
  ["value", "Another value"],
  ["any", "Any number"],
] as const;

const atADate = "date";
const ends = [
  ["1 hour", "In an hour"],
  ["8 hours", "In 8 hours"],
  ["1 day", "In a day"],
  ["7 days", "In a week"],
  [atADate, "At a date and time"],
  ["", "When it is cleared"],
] as const;

const pers = [
  ["1s", "a second"],
  ["1m", "a minute"],
  ["1h", "an hour"],
  ["1 day", "a day"],
] as const;

const wholeNumber = (text: string, least: number): number | null => {
  const number = Number(text);
  return /^\d+$/.test(text.trim()) && number >= least && number <= 1_000_000_000 ? number : null;
};

/** The value of a field of the type "datetime-local", on the clock of the browser. */
function localFieldValue(at: number): string {
  const date = new Date(at);
  return new Date(at - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

const choiceOf = (value: unknown): Choice => (value === undefined ? "code" : value === null ? "any" : "value");
const perOf = (perMs: number | undefined): string =>
  ({ 1000: "1s", 60000: "1m", 3600000: "1h", 86400000: "1 day" })[perMs ?? 60_000] ?? `${perMs}ms`;

/** Asks for the values that are to be in force in place of those of the code. */
export function OverrideDialog({ limit, onClose }: { readonly limit: Limit; readonly onClose: () => void }) {
  const { name, concurrency, rate, inForce } = limit;
  const [slots, setSlots] = useState<Choice>(
    limit.override === null ? (concurrency === null ? "code" : "value") : choiceOf(limit.override.concurrency),
  );
  const [slotsText, setSlotsText] = useState(String(inForce.concurrency ?? concurrency ?? 10));
  const [pace, setPace] = useState<Choice>(
    limit.override === null ? (concurrency === null ? "value" : "code") : choiceOf(limit.override.rate),
  );
  const known = inForce.rate ?? rate;
  const [count, setCount] = useState(String(known?.limit ?? 100));
  const [per, setPer] = useState(perOf(known?.perMs));
  const [burst, setBurst] = useState(String(known?.burst ?? 0));
  const [end, setEnd] = useState("1 hour");
  const [local, setLocal] = useState(() => localFieldValue(databaseNow() + 86_400_000));
  const instant = Date.parse(local);
  const endProblem =
    end !== atADate
      ? null
      : Number.isNaN(instant)
        ? "This is no date with a time."
        : instant <= databaseNow()
          ? "This time has passed."
          : null;
  const slotsProblem =
    slots === "value" && wholeNumber(slotsText, 1) === null
      ? "A whole number of at least 1. To stop runs, pause their queue."
      : null;
  const countProblem = pace === "value" && wholeNumber(count, 1) === null ? "A whole number of at least 1." : null;
  const burstProblem = pace === "value" && wholeNumber(burst, 0) === null ? "A whole number, or 0." : null;
  const override: Override = {
    ...(slots === "code" ? {} : { concurrency: slots === "any" ? null : wholeNumber(slotsText, 1) }),
    ...(pace === "code" ? {} : { rate: pace === "any" ? null : rateOf(count, per, burst) }),
    ...(end === "" || endProblem !== null ? {} : { until: end === atADate ? new Date(instant).toISOString() : end }),
  };
  const changesNothing = slots === "code" && pace === "code";
  const { cli, typescript } = overrideEquivalent(name, override);
  const problems = [slotsProblem, countProblem, burstProblem, endProblem];
  return (
    <ConfirmDialog
      title={`Override: ${name}`}
      label="Override the limit"
      icon="limits"
      permission="limits"
      isComplete={!changesNothing && problems.every((problem) => problem === null)}
      reasonHint="Shown with the limit as long as the override is in force."
      cli={cli}
      typescript={typescript}
      send={async (reason) => {
        await put(limitPath(name, "override"), { ...override, ...reason });
        showToast(`The override of ${name} is in force.`);
      }}
      onClose={onClose}
    >
      <p>
        The code allows {allowances({ concurrency, rate }).join(", and ")}. Other values are in force at once, for all
        workers. Slots that are held are not taken away.
      </p>
      <Consequence limit={limit} override={override} />
      <div class={css.values}>
        <Select
          label="At a time"
          value={slots}
          options={choices}
          onChange={(event) => setSlots(event.currentTarget.value as Choice)}
        />
        {slots === "value" ? (
          <TextField
            label="Slots for each key"
            inputMode="numeric"
            value={slotsText}
            error={slotsProblem}
            onInput={(event) => setSlotsText(event.currentTarget.value)}
          />
        ) : null}
      </div>
      <div class={css.values}>
        <Select
          label="Rate"
          value={pace}
          options={choices}
          onChange={(event) => setPace(event.currentTarget.value as Choice)}
        />
        {pace === "value" ? (
          <>
            <TextField
              label="How many"
              inputMode="numeric"
              value={count}
              error={countProblem}
              onInput={(event) => setCount(event.currentTarget.value)}
            />
            <Select
              label="In what time"
              value={per}
              options={pers.some(([value]) => value === per) ? pers : [...pers, [per, per]]}
              onChange={(event) => setPer(event.currentTarget.value)}
            />
            <TextField
              label="More at once"
              inputMode="numeric"
              value={burst}
              error={burstProblem}
              onInput={(event) => setBurst(event.currentTarget.value)}
            />
          </>
        ) : null}
      </div>
      <Select
        label="The override ends"
        value={end}
        options={ends}
        {...(end === ""
          ? { hint: "It stays in force, also over new releases of the code, until a person clears it." }
          : {})}
        onChange={(event) => setEnd(event.currentTarget.value)}
      />
      {end === atADate ? (
        <TextField
          label="Date and time on the clock of this browser"
          type="datetime-local"
          value={local}
          error={endProblem}
          onInput={(event) => setLocal(event.currentTarget.value)}
        />
      ) : null}
    </ConfirmDialog>
  );
}

function rateOf(count: string, per: string, burst: string): NonNullable<Override["rate"]> {
  const more = wholeNumber(burst, 0) ?? 0;
  return { limit: wholeNumber(count, 1) ?? 1, per, ...(more === 0 ? {} : { burst: more }) };
}

/** A lowered limit is over-used until runs give slots back, which surprises people who watch it. */
function Consequence({
  limit: { inForce, waiting, inUse },
  override,
}: {
  readonly limit: Limit;
  readonly override: Override;
}) {
  const before = inForce.concurrency ?? Number.POSITIVE_INFINITY;
  const asked = override.concurrency;
  const after = asked === undefined ? before : (asked ?? Number.POSITIVE_INFINITY);
  if (after < before && inUse > 0)
    return (
      <Note tone="pending">
        Lowered: nothing begins for a key that holds more than {formatCount(after)} until it has given enough back.
      </Note>
    );
  if (after > before && waiting > 0)
    return (
      <Note tone="running">
        Raised: of {plural(waiting, "run or step", "runs and steps")} that wait, more begin at once.
      </Note>
    );
  return null;
}
