/** The database: what needs attention, what its tables contain, and its upkeep. */
import { useState } from "preact/hooks";
import { usePageActions } from "../../actions/page-actions.js";
import { useQuery } from "../../api/queries.js";
import { may } from "../../shell/me.js";
import { Button } from "../../ui/button.js";
import { formatBytes, plural } from "../../ui/format.js";
import { Facts, Failure, Loading, PageHeading, Section } from "../../ui/page.js";
import { formatDuration, Time } from "../../ui/time.js";
import type { Database } from "./database-answer.js";
import { Findings } from "./findings.js";
import { PruneDialog } from "./prune-dialog.js";
import { TableSizes } from "./table-sizes.js";
import { VerificationResult } from "./verification-result.js";
import { type Verification, VerifyDialog } from "./verify-dialog.js";

/** The sizes change slowly, and reading them costs the database more than a list does. */
const minIntervalMs = 15_000;

export function DatabaseScreen() {
  const { data, error } = useQuery<Database>("v1/database", {}, { minIntervalMs });
  const [opened, setOpened] = useState<"verify" | "prune" | null>(null);
  const [verification, setVerification] = useState<Verification | null>(null);
  const isAllowed = may("prune");
  usePageActions(
    isAllowed
      ? [
          { label: "Verify the database", icon: "check", run: () => setOpened("verify") },
          { label: "Prune old runs", icon: "cross", run: () => setOpened("prune") },
        ]
      : [],
    [isAllowed],
  );
  const refusal = isAllowed ? {} : { disabled: true, title: "Your access lacks “prune”." };
  return (
    <>
      <PageHeading title="Database" about={data?.description}>
        <Button icon="check" {...refusal} onClick={() => setOpened("verify")}>
          Verify…
        </Button>
        <Button icon="cross" {...refusal} onClick={() => setOpened("prune")}>
          Prune…
        </Button>
      </PageHeading>
      {verification === null ? null : (
        <VerificationResult verification={verification} onClose={() => setVerification(null)} />
      )}
      {data === undefined ? error === null ? <Loading lines={8} /> : <Failure error={error} /> : <Content {...data} />}
      {opened === "verify" ? <VerifyDialog onDone={setVerification} onClose={() => setOpened(null)} /> : null}
      {opened === "prune" ? (
        <PruneDialog retentionMs={data?.retentionMs ?? null} onClose={() => setOpened(null)} />
      ) : null}
    </>
  );
}

function Content(database: Database) {
  return (
    <>
      <Findings checks={database.checks} />
      <Section title="Facts">
        <Facts facts={factsOf(database)} />
      </Section>
      <TableSizes {...database} />
    </>
  );
}

function factsOf({ engine, version, bytes, freeBytes, migrations, retentionMs, nextHousekeepingAt }: Database) {
  const free = freeBytes === null || freeBytes === 0 ? "" : `, ${formatBytes(freeBytes)} of it free`;
  return [
    ["Database", <span title={version ?? ""}>{[engine, numbersOf(version)].join(" ")}</span>],
    ["Size", bytes === null ? null : `${formatBytes(bytes)}${free}`],
    ["Version of the tables", versionText(migrations)],
    [
      "Ended runs are kept",
      retentionMs === null ? "for ever, because no retention is set" : `for ${daysText(retentionMs)}`,
    ],
    [
      "Next housekeeping",
      nextHousekeepingAt === null ? "unknown: this server runs no worker" : <Time at={nextHousekeepingAt} />,
    ],
  ] as const;
}

/** "15.20" of "15.20 (Debian 15.20-0+deb12u1)". */
const numbersOf = (version: string | null) => /^[\d.]+/.exec(version ?? "")?.[0] ?? version ?? "";

function versionText({ applied, pending }: Database["migrations"]): string | null {
  const latest = applied.at(-1);
  if (latest === undefined) return null;
  if (pending.length === 0) return `${latest.version}, up to date`;
  return `${latest.version}; ${plural(pending.length, "migration")} to apply`;
}

const dayMs = 86_400_000;

const daysText = (ms: number) => (ms % dayMs === 0 ? plural(ms / dayMs, "day") : formatDuration(ms));
