import { PageHeading } from "../../ui/page.js";

export function WorkflowScreen() {
  return <PageHeading title="Workflow" />;
}
