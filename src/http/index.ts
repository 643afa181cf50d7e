/** The public names of `pawl/http`. */
export type { Access, Authorization, Permission } from "./access.js";
export type { DashboardOptions } from "./dashboard/dashboard.js";
export { type HttpHandler, type HttpOptions, httpHandler } from "./handler.js";
export { type NodeListener, nodeListener } from "./node-listener.js";
export type { PayloadContext, Redact } from "./payload-writer.js";
