/** A sentence of the server in which instants are written as on the clock of the person, and not in ISO 8601. */
import { databaseNow } from "../../../shell/me.js";
import { timeStyle } from "../../../shell/settings.js";
import { escapeHidden } from "../../../ui/format.js";
import { formatInstant } from "../../../ui/time.js";

const instant = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)/;

export function TextWithTimes({ text }: { readonly text: string }) {
  const isUtc = timeStyle.value === "utc";
  return (
    <>
      {text.split(instant).map((part, index) =>
        index % 2 === 0 ? (
          escapeHidden(part)
        ) : (
          <time key={index} dateTime={part} title={part}>
            {clockTime(Date.parse(part), isUtc)}
          </time>
        ),
      )}
    </>
  );
}

/** "16:02:53" if it is today, with the date otherwise. */
export function clockTime(at: number, isUtc: boolean): string {
  const text = formatInstant(at, isUtc);
  const today = formatInstant(databaseNow(), isUtc).slice(0, 10);
  return text.startsWith(today) ? text.slice(11) : text;
}
