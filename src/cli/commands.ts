/** All commands, in the order in which help lists them. A new command is a file in commands/ and an entry here. */
import type { CommandGroup } from "./command.js";
import { cancel } from "./commands/cancel.js";
import { completion } from "./commands/completion.js";
import { dag } from "./commands/dag.js";
import { dashboard } from "./commands/dashboard.js";
import { dev } from "./commands/dev.js";
import { doctor } from "./commands/doctor.js";
import { errors } from "./commands/errors.js";
import { explain } from "./commands/explain.js";
import { graph } from "./commands/graph.js";
import { help } from "./commands/help.js";
import { history } from "./commands/history.js";
import { init } from "./commands/init.js";
import { limits } from "./commands/limits.js";
import { metrics } from "./commands/metrics.js";
import { migrate } from "./commands/migrate.js";
import { pause } from "./commands/pause.js";
import { prune } from "./commands/prune.js";
import { queues } from "./commands/queues.js";
import { reattempt } from "./commands/reattempt.js";
import { resume } from "./commands/resume.js";
import { retry } from "./commands/retry.js";
import { runs } from "./commands/runs.js";
import { schedules } from "./commands/schedules.js";
import { show } from "./commands/show.js";
import { signal } from "./commands/signal.js";
import { skip } from "./commands/skip.js";
import { start } from "./commands/start.js";
import { verify } from "./commands/verify.js";
import { worker } from "./commands/worker.js";
import { workers } from "./commands/workers.js";

export const groups: readonly CommandGroup[] = [
  { title: "Execute", commands: [init, dev, worker] },
  {
    title: "Runs",
    commands: [start, runs, errors, show, explain, history, signal, pause, resume, skip, cancel, retry, reattempt, dag],
  },
  {
    title: "Operate",
    commands: [dashboard, schedules, limits, workers, queues, metrics, migrate, prune, verify, doctor],
  },
  { title: "More", commands: [graph, completion, help] },
];
