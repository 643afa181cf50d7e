import type { RunTabProps } from "../tab-props.js";

export function Data(_props: RunTabProps) {
  return <p>Data</p>;
}
