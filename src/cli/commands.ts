/** The commands, in the order in which help lists them. A new one is a file in commands/ and its name here. */
import type { CommandGroup } from "./command.js";
import { cancel } from "./commands/cancel.js";
import { completion } from "./commands/completion.js";
import { dev } from "./commands/dev.js";
import { doctor } from "./commands/doctor.js";
import { graph } from "./commands/graph.js";
import { help } from "./commands/help.js";
import { history } from "./commands/history.js";
import { migrate } from "./commands/migrate.js";
import { pause } from "./commands/pause.js";
import { resume } from "./commands/resume.js";
import { runs } from "./commands/runs.js";
import { show } from "./commands/show.js";
import { signal } from "./commands/signal.js";
import { skip } from "./commands/skip.js";
import { start } from "./commands/start.js";
import { verify } from "./commands/verify.js";
import { worker } from "./commands/worker.js";
import { workers } from "./commands/workers.js";

export const groups: readonly CommandGroup[] = [
  { title: "Execute", commands: [dev, worker] },
  { title: "Runs", commands: [start, runs, show, history, signal, pause, resume, skip, cancel] },
  { title: "Operate", commands: [workers, migrate, verify, doctor] },
  { title: "More", commands: [graph, completion, help] },
];
