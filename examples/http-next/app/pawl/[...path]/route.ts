/**
 * The HTTP API as a route handler of Next.js. The worker is a process of its own (`npx pawl worker`), because Next.js may
 * end its processes at any time.
 */
import { type HttpHandler, httpHandler } from "pawl/http";
import { bearerToken } from "../../../../bearer-token.js";
import { sharedPawl } from "../../../lib/pawl.js";

/** The edge runtime has no database drivers. */
export const runtime = "nodejs";
/** No answer is made when the application is built. */
export const dynamic = "force-dynamic";

let handler: HttpHandler | undefined;

async function handle(request: Request): Promise<Response> {
  handler ??= httpHandler(await sharedPawl(), {
    basePath: "/pawl",
    authorize: bearerToken(process.env.PAWL_TOKEN ?? "", { user: "shop", access: "all" }),
  });
  return handler(request);
}

export const GET = handle;
export const POST = handle;
export const PUT = handle;
export const DELETE = handle;
