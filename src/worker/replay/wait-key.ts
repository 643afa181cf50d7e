import { childRunId } from "../../core/naming/ids.js";

const maxLength = 200;

/** Returns the name of a wait for signals. A long list of signal names is hashed, so that the key stays short. */
export const waitKey = (names: string): string =>
  `signal:${names.length <= maxLength ? names : childRunId("wait", names, 0)}`;
