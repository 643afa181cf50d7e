/** Options of every recorded call. */
export interface CallOptions {
  /**
   * Set it on a call that you add before calls that open runs have already recorded. Without `added`, such a run is paused,
   * because the new call could be one of the recorded calls under a new name.
   */
  readonly added?: boolean;
}
