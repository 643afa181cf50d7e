import { PageHeading } from "../../ui/page.js";

export function QueuesScreen() {
  return <PageHeading title="Queues" />;
}
