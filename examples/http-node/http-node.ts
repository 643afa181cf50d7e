/** The HTTP API in a server of plain Node, beside the server's own paths. */
import { createServer, type Server } from "node:http";
import type { Pawl } from "pawl";
import { httpHandler, nodeListener } from "pawl/http";
import { bearerToken } from "../bearer-token.js";

export function createApp(pawl: Pawl, token: string): Server {
  const servePawl = nodeListener(
    httpHandler(pawl, {
      basePath: "/pawl",
      authorize: bearerToken(token, { user: "shop", access: "all" }),
    }),
  );
  return createServer((request, response) => {
    if (request.url?.startsWith("/pawl/")) servePawl(request, response);
    else response.end("This is the shop.\n");
  });
}
