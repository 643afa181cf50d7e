import { PageHeading } from "../../ui/page.js";

export function ErrorsScreen() {
  return <PageHeading title="Errors" />;
}
