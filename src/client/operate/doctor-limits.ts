/** Checks limits: overrides that were forgotten, and runs that wait for a limit that does not exist. */
import { laneOf } from "../../core/limits/lane.js";
import { formatDuration } from "../../core/naming/duration.js";
import type { Store } from "../../store/contract/store.js";
import { type Check, namesText, ok, warning } from "./check.js";

/** An override without an end that is older than this was probably meant for an incident that is over. */
const maxOverrideAgeMs = 7 * 24 * 3_600_000;
/** So many classes of waiting runs are looked at. */
const maxClasses = 1_000;

export async function checkLimits(store: Store): Promise<Check[]> {
  const [limits, classes, now] = await Promise.all([
    store.limits.list(),
    store.limits.classes({ afterId: null }, maxClasses),
    store.now(),
  ]);
  const known = new Set(limits.map(({ name }) => name));
  const awaited = new Set(classes.flatMap(({ lanes }) => lanes.map((lane) => laneOf(lane).limit)));
  const missing = [...awaited].filter((name) => !known.has(name)).sort();
  const forgotten = limits.flatMap(({ name, override }) => {
    const ageMs = override === null || override.until !== null ? 0 : now - override.at;
    return ageMs > maxOverrideAgeMs ? [`${name} (${formatDuration(ageMs)} old)`] : [];
  });
  const warnings = [
    ...(missing.length === 0
      ? []
      : [warning("limits", `runs wait for limits that no worker has registered: ${namesText(missing)}`)]),
    ...(forgotten.length === 0
      ? []
      : [
          warning(
            "limits",
            `overridden without an end for more than a week: ${namesText(forgotten)}; run: pawl limits clear <name>`,
          ),
        ]),
  ];
  if (warnings.length > 0 || limits.length === 0) return warnings;
  const isInForce = ({ override }: (typeof limits)[number]) =>
    override !== null && (override.until === null || override.until > now);
  const overridden = limits.filter(isInForce).length;
  return [ok("limits", `${limits.length}, ${overridden === 0 ? "none is" : `${overridden} of them`} overridden`)];
}
