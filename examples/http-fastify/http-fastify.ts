/** The HTTP API in a Fastify application, whose JSON parser reads all bodies first. */
import Fastify, { type FastifyInstance } from "fastify";
import type { Pawl } from "pawl";
import { httpHandler, nodeListener } from "pawl/http";
import { bearerToken } from "../bearer-token.js";

export function createApp(pawl: Pawl, token: string): FastifyInstance {
  const servePawl = nodeListener(
    httpHandler(pawl, {
      basePath: "/pawl",
      authorize: bearerToken(token, { user: "shop", access: "all" }),
    }),
  );
  // Streams of events stay open until the client goes; `app.close()` must not wait for them.
  const app = Fastify({ forceCloseConnections: true });
  app.all("/pawl/*", { bodyLimit: 2 * 1024 * 1024 }, (request, reply) => {
    reply.hijack(); // From here on, Pawl writes the response.
    servePawl(Object.assign(request.raw, { body: request.body }), reply.raw);
  });
  app.post("/echo", async (request) => request.body);
  return app;
}
