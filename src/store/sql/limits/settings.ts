/** How the settings of limits are stored: as JSON, because they are read as a whole and no statement looks into them. */
import type { LimitOverride } from "../../../core/limits/settings.js";
import type { LimitSettings } from "../../contract/limits.js";

type StoredSettings = Omit<LimitSettings, "name">;

export const encodeSettings = ({ concurrency, rate, isHeldOpen, whenFull }: StoredSettings): string =>
  JSON.stringify({ concurrency, rate, isHeldOpen, ...(whenFull && { whenFull }) } satisfies StoredSettings);

export const decodeSettings = (settings: string): StoredSettings => JSON.parse(settings);

export const decodeOverride = (override: unknown): LimitOverride | null =>
  typeof override === "string" && override !== "" ? JSON.parse(override) : null;
