/** All routes of the HTTP API. */
import type { Route } from "./route.js";
import { commandRoutes } from "./routes/commands.js";
import { databaseRoutes } from "./routes/database.js";
import { inspectRoutes } from "./routes/inspect.js";
import { limitRoutes } from "./routes/limits.js";
import { listRoutes } from "./routes/lists.js";
import { operateRoutes } from "./routes/operate.js";
import { scheduleRoutes } from "./routes/schedules.js";
import { serviceRoutes } from "./routes/service.js";
import { startRoutes } from "./routes/starts.js";
import { waterfallRoutes } from "./routes/waterfall.js";

export const allRoutes: readonly Route[] = [
  ...serviceRoutes(() => allRoutes),
  ...startRoutes,
  ...listRoutes,
  ...inspectRoutes,
  ...waterfallRoutes,
  ...commandRoutes,
  ...operateRoutes,
  ...scheduleRoutes,
  ...limitRoutes,
  ...databaseRoutes,
];
