import type { RunTabProps } from "../tab-props.js";

export function Log(_props: RunTabProps) {
  return <p>Log</p>;
}
