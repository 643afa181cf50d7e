export interface ScreenProps {
  /** The variable parts of the path: `run` in `/runs/:run`. */
  readonly params: Readonly<Record<string, string>>;
}
