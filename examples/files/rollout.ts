/** Chooses the version for a file while the second version is tried on a share of the files. */
import { createHash } from "node:crypto";
import { processFileNames } from "./contract.js";

/** The same file always gets the same version, so that users do not see it change back and forth. */
export function versionFor(key: string, canaryShare: number): string {
  const chance = createHash("sha256").update(key).digest().readUInt32BE() / 2 ** 32;
  return chance < canaryShare ? processFileNames.canary : processFileNames.stable;
}
