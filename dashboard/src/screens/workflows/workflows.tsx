import { PageHeading } from "../../ui/page.js";

export function WorkflowsScreen() {
  return <PageHeading title="Workflows" />;
}
