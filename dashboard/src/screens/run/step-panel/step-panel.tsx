import type { RunTabProps } from "../tab-props.js";

export function StepPanel(_props: RunTabProps) {
  return <p>StepPanel</p>;
}
