import { PageHeading } from "../../ui/page.js";

export function HomeScreen() {
  return <PageHeading title="Home" />;
}
