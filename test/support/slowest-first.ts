/**
 * The order of the test files: first those that need a process of their own, then those that share one. Of both, those that take long
 * begin first, so that no worker is alone with one of them at the end.
 */
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Ten seconds and more, longest first, as measured on two processors. The others follow as Vitest sorts them. */
const slowFiles = [
  "test/stores/pgbouncer.test.ts",
  "test/client/start.test.ts",
  "test/stores/sqld.test.ts",
  "test/processes/service.test.ts",
  "test/processes/cross-process.test.ts",
  "test/limits/kills.test.ts",
  "test/stores/mysql.test.ts",
  "test/processes/swallowed-connections.test.ts",
  "test/function-style/transaction.test.ts",
  "test/counts/idle.test.ts",
  "test/package/tarball.test.ts",
  "test/limits/traps.test.ts",
  "test/limits/rules.test.ts",
  "test/stores/postgres.test.ts",
  "test/stores/libsql.test.ts",
  "test/counts/due-schedules.test.ts",
  "test/processes/lost-answers.test.ts",
  "test/cli/worker.test.ts",
  "test/schedules/operate.test.ts",
  "test/cli/init.test.ts",
  "test/dashboard/scale.test.ts",
  "test/cli/dashboard.test.ts",
  "test/limits/fairness.test.ts",
  "test/stores/sqlite.test.ts",
  "test/schedules/kills.test.ts",
  "test/schedules/crashes.test.ts",
  "test/function-style/stores.test.ts",
  "test/client/unreachable-database.test.ts",
  "test/schedules/firing.test.ts",
  "test/dashboard/hostile.test.ts",
  "src/store/sqlite/processes.test.ts",
  "test/processes/blocked.test.ts",
  "test/dashboard/accessibility.test.ts",
  "test/dashboard/schedules.test.ts",
  "test/bad-input/values.test.ts",
  "test/function-style/transaction-attacks.test.ts",
  "test/dashboard/schedule-actions.test.ts",
  "test/cli/servers.test.ts",
  "test/processes/polling.test.ts",
  "test/mistakes/mistakes.test.ts",
  "test/http/hostile-streams.test.ts",
  "test/dashboard/states.test.ts",
  "test/http/secrets.test.ts",
  "test/processes/graph-kills.test.ts",
  "test/dashboard/live.test.ts",
  "test/processes/resumable-kills-postgres.test.ts",
  "test/limits/on-conflict-races.test.ts",
  "test/http/conflicts.test.ts",
  "src/store/libsql-remote/libsql-remote.test.ts",
  "test/dashboard/addresses.test.ts",
  "test/processes/kills-sqld.test.ts",
  "test/dashboard/dev-story.test.ts",
  "test/client/races.test.ts",
  "test/client/verify-corruptions.test.ts",
  "src/store/sqlite/conformance.test.ts",
  "test/bad-input/damaged-rows.test.ts",
  "test/processes/class-job-kills.test.ts",
  "test/telemetry/processes.test.ts",
  "test/processes/kills-mysql.test.ts",
  "test/sql-functions/values.test.ts",
  "test/http/generated-client.test.ts",
  "test/dynamic/transient.test.ts",
  "test/processes/kills-postgres.test.ts",
  "test/stores/memory.test.ts",
];

export class SlowestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const place = slowFiles.indexOf(relative(this.ctx.config.root, moduleId));
      return place === -1 ? slowFiles.length : place;
    };
    // A shared process ends as soon as the next file wants one of its own, so the files that share one must not be
    // interrupted by others. They come last, because they include the quickest, which fill the end.
    const isShared = ({ project }: TestSpecification) => Number(!project.config.isolate);
    // Stable: files of the same rank stay as Vitest sorts them.
    return (await super.sort(files)).sort((a, b) => isShared(a) - isShared(b) || rank(a) - rank(b));
  }
}
