import { PageHeading } from "../../ui/page.js";

export function WorkersScreen() {
  return <PageHeading title="Workers" />;
}
