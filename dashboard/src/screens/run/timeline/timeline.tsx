import type { RunTabProps } from "../tab-props.js";

export function Timeline(_props: RunTabProps) {
  return <p>Timeline</p>;
}
