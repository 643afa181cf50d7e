/** The versions of a workflow that are known: those of workers, and the one that was registered last. */
import type { Answer } from "../../api/api.js";
import { escapeHidden } from "../../ui/format.js";
import { Icon } from "../../ui/icon.js";
import { Section } from "../../ui/page.js";
import { Table } from "../../ui/table.js";
import { listText } from "../run/graph/box-face.js";
import css from "./workflow.module.css";
import { runsHref } from "./workflow-links.js";
import { jobNameOf, type Workflow } from "./workflow-rows.js";

type MetricsAnswer = Answer<"getMetrics">;

interface Version {
  readonly version: string;
  readonly workers: readonly string[];
  readonly isLatest: boolean;
}

export function Versions({
  workflow,
  metrics,
}: {
  readonly workflow: Workflow;
  readonly metrics: MetricsAnswer | undefined;
}) {
  const { name } = workflow;
  return (
    <Section title="Versions and workers" isFlush>
      <Table
        label="Versions"
        rows={versionsOf(workflow, metrics?.workers ?? [])}
        keyOf={({ version }) => `version ${version}`}
        columns={[
          {
            title: "Version",
            cell: ({ version, isLatest }) => (
              <>
                {version === "" ? "no version" : escapeHidden(version)}
                {isLatest ? <span class={css.muted}> · latest</span> : null}
              </>
            ),
          },
          {
            title: "Live workers",
            cell: ({ workers }) =>
              workers.length === 0 ? (
                <span class={css.warning}>
                  <Icon name="errors" size={14} /> None
                </span>
              ) : (
                `${workers.length}: ${listText([...new Set(workers)].map(escapeHidden))}`
              ),
          },
          {
            title: "Open runs",
            cell: ({ version }) => (
              <a href={runsHref({ workflow: name, ...(version === "" ? {} : { version }), active: "true" })}>Show</a>
            ),
          },
        ]}
      />
    </Section>
  );
}

function versionsOf({ name, version }: Workflow, workers: MetricsAnswer["workers"]): Version[] {
  const job = jobNameOf(name);
  const byVersion = new Map<string, string[]>([[version, []]]);
  for (const worker of workers) {
    const own = worker.workflows.filter((one) => one.name === name).map((one) => one.version);
    // Workers list the jobs that they have without versions.
    const versions = own.length === 0 && job !== null && worker.jobs.includes(job) ? [""] : own;
    for (const one of versions) {
      const names = byVersion.get(one) ?? [];
      byVersion.set(one, worker.live ? [...names, worker.name] : names);
    }
  }
  return [...byVersion].map(([one, names]) => ({
    version: one,
    workers: names,
    isLatest: one === version && byVersion.size > 1,
  }));
}
