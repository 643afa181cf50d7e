import { PageHeading } from "../../ui/page.js";

export function RunsScreen() {
  return <PageHeading title="Runs" />;
}
