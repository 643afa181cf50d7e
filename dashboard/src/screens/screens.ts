/** All screens: the navigation, the keyboard, the palette and the addresses are made from this list. */
import type { ComponentType } from "preact";
import type { IconName } from "../ui/icon.js";
import { DatabaseScreen } from "./database/database.js";
import { ErrorsScreen } from "./errors/errors.js";
import { HomeScreen } from "./home/home.js";
import { LimitScreen } from "./limits/limit-screen.js";
import { LimitsScreen } from "./limits/limits.js";
import { QueuesScreen } from "./queues/queues.js";
import { RunScreen } from "./run/run.js";
import { RunsScreen } from "./runs/runs.js";
import { ScheduleScreen } from "./schedules/schedule-screen.js";
import { SchedulesScreen } from "./schedules/schedules.js";
import type { ScreenProps } from "./screen-props.js";
import { WorkersScreen } from "./workers/workers.js";
import { WorkflowScreen } from "./workflows/workflow.js";
import { WorkflowsScreen } from "./workflows/workflows.js";

interface Screen {
  readonly path: string;
  readonly component: ComponentType<ScreenProps>;
  /** How the navigation shows it; screens without it are reached from others. */
  readonly nav?: {
    readonly label: string;
    readonly icon: IconName;
    /** The second key of the shortcut `g …`. */
    readonly key: string;
  };
}

export const screens: readonly Screen[] = [
  { path: "/", component: HomeScreen, nav: { label: "Home", icon: "home", key: "h" } },
  { path: "/runs", component: RunsScreen, nav: { label: "Runs", icon: "runs", key: "r" } },
  { path: "/runs/:run", component: RunScreen },
  { path: "/workflows", component: WorkflowsScreen, nav: { label: "Workflows", icon: "workflows", key: "w" } },
  { path: "/workflows/:workflow", component: WorkflowScreen },
  { path: "/errors", component: ErrorsScreen, nav: { label: "Errors", icon: "errors", key: "e" } },
  { path: "/queues", component: QueuesScreen, nav: { label: "Queues", icon: "queues", key: "q" } },
  { path: "/limits", component: LimitsScreen, nav: { label: "Limits", icon: "limits", key: "l" } },
  { path: "/limits/:limit", component: LimitScreen },
  { path: "/schedules", component: SchedulesScreen, nav: { label: "Schedules", icon: "schedules", key: "s" } },
  { path: "/schedules/:schedule", component: ScheduleScreen },
  { path: "/workers", component: WorkersScreen, nav: { label: "Workers", icon: "workers", key: "k" } },
  { path: "/database", component: DatabaseScreen, nav: { label: "Database", icon: "database", key: "d" } },
];
