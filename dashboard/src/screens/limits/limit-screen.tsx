/** The page of one limit: what it allows, which runs hold its slots, and what waits for them. */
import { limitPath } from "../../api/api.js";
import { useQuery } from "../../api/queries.js";
import { href, location } from "../../router/router.js";
import { escapeHidden } from "../../ui/format.js";
import { Empty, Failure, Loading, PageHeading, useTitle } from "../../ui/page.js";
import type { ScreenProps } from "../screen-props.js";
import { Lanes } from "./lanes.js";
import type { LimitPage } from "./limit.js";
import { LimitHeader } from "./limit-header.js";

const pageSize = 50;

export function LimitScreen({ params }: ScreenProps) {
  const name = params.limit as string;
  return <LimitView key={name} name={name} />;
}

function LimitView({ name }: { readonly name: string }) {
  useTitle(name);
  const { search } = location.value;
  const [key, cursor] = [search.get("key"), search.get("after")];
  const { data, error } = useQuery<LimitPage>(
    limitPath(name),
    { limit: pageSize, ...(key === null ? { cursor } : { key }) },
    { keepPrevious: true },
  );
  if (error?.status === 404) return <NoLimit name={name} />;
  if (data === undefined) return error === null ? <Loading lines={8} /> : <Failure error={error} />;
  return (
    <>
      <LimitHeader limit={data} />
      <Lanes limit={data} wanted={key} cursor={cursor} />
    </>
  );
}

function NoLimit({ name }: { readonly name: string }) {
  return (
    <>
      <PageHeading title={escapeHidden(name)} />
      <Empty title="There is no such limit" icon="limits">
        No worker has registered it in this database. A limit of runs appears when a worker that has it starts, a limit
        of steps when the first such step begins. <a href={href("/limits")}>See all limits</a>
      </Empty>
    </>
  );
}
