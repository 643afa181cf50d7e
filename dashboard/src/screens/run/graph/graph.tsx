import type { RunTabProps } from "../tab-props.js";

export function Graph(_props: RunTabProps) {
  return <p>Graph</p>;
}
