/** Routes about the service itself: health, the caller's access, and the description of the API. */
import { isAllowed, permissions } from "../access.js";
import { openApiDocument } from "../openapi.js";
import { HttpError, retrySoon } from "../problem.js";
import { type Route, route } from "../route.js";
import { list, nullable, object, oneOf, payload, text, time } from "../schema.js";

const noRun = "00000000-0000-7000-8000-000000000000";
const okSchema = object("", { status: oneOf("Always ok.", ["ok"]) });

/** @param allRoutes all routes of the table, including these */
export const serviceRoutes = (allRoutes: () => readonly Route[]): readonly Route[] => [
  route(
    "GET",
    "/live",
    "live",
    { summary: "Whether the process answers", requires: "nothing", answers: { 200: okSchema } },
    async () => ({ json: { status: "ok" } }),
  ),
  route(
    "GET",
    "/ready",
    "ready",
    { summary: "Whether the database answers", requires: "nothing", answers: { 200: okSchema }, problems: [503] },
    async ({ pawl, questions }) => {
      try {
        // The clock of a store may be that of the process, so this reads a row, of a run that does not exist.
        await questions.ask("ready", () => pawl.internals.store.run(noRun));
      } catch {
        throw new HttpError(503, "UNAVAILABLE", "The database does not answer.", retrySoon);
      }
      return { json: { status: "ok" } };
    },
  ),
  route(
    "GET",
    "/api/openapi.json",
    "getOpenApi",
    { summary: "This document", requires: "read", answers: { 200: payload("An OpenAPI 3.1 document.") } },
    async ({ basePath }) => ({ json: openApiDocument(allRoutes(), basePath) }),
  ),
  route(
    "GET",
    "/api/v1/me",
    "getMe",
    {
      summary: "Who the caller is and what it may do",
      requires: "read",
      answers: {
        200: object("", {
          user: nullable(text("The name of the user, if the server knows it.")),
          permissions: list("What the caller may do besides reading.", oneOf("A permission.", permissions)),
          now: time("The clock of the database."),
          database: text("Where the data is, without a password.", { maxLength: 10_000 }),
        }),
      },
    },
    async ({ user, access, pawl, questions }) => ({
      json: {
        user: user ?? null,
        permissions: permissions.filter((permission) => isAllowed(access, permission)),
        now: new Date(await questions.ask("now", () => pawl.internals.store.now())).toISOString(),
        database: pawl.description,
      },
    }),
  ),
];
