import { PageHeading } from "../../ui/page.js";

export function DatabaseScreen() {
  return <PageHeading title="Database" />;
}
