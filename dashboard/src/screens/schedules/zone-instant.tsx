/** An instant on the clocks of a schedule; the clocks of the person, and UTC, are in the title. */
import { escapeHidden } from "../../ui/format.js";
import { formatInstant } from "../../ui/time.js";
import { isKnownZone, zoneText } from "./zone-time.js";

export function ZoneInstant({
  at,
  zone,
  withZone = false,
}: {
  readonly at: string;
  readonly zone: string;
  /** Whether the name of the zone stands behind the time. */
  readonly withZone?: boolean;
}) {
  const ms = Date.parse(at);
  const known = isKnownZone(zone) ? zone : "UTC";
  return (
    <time
      class="mono"
      dateTime={at}
      title={`${formatInstant(ms, false)} by the clock of your browser · ${formatInstant(ms, true)}`}
    >
      {zoneText(known, ms)}
      {withZone ? ` ${escapeHidden(known)}` : ""}
    </time>
  );
}
