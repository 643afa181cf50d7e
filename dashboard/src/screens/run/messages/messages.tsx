import type { RunTabProps } from "../tab-props.js";

export function Messages(_props: RunTabProps) {
  return <p>Messages</p>;
}
