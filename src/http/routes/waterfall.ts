/** The route that reads what a run spent its time on. */
import { maxWindow, readWaterfall } from "../../client/inspect/waterfall/read-waterfall.js";
import { route } from "../route.js";
import { integer, object, optional, text } from "../schema.js";
import { waterfallSchema, waterfallView } from "../views/waterfall-view.js";
import { runOf } from "./common.js";

export const waterfallRoutes = [
  route(
    "GET",
    "/api/v1/runs/{run}/waterfall",
    "getRunWaterfall",
    {
      summary: "Read what a run spent its time on, as rows of spans",
      requires: "read",
      query: object("", {
        after: optional(
          integer("The window begins after the event with this number. Default: it ends with the last event.", 0),
        ),
        limit: optional(integer(`How many events the window has. Default ${maxWindow}.`, 1, maxWindow)),
        expand: optional(text("Returns the members of the group with this id instead.", { maxLength: 20_000 })),
      }),
      answers: { 200: waterfallSchema },
      problems: [404],
    },
    async (call) => {
      const { runId } = runOf(call);
      const waterfall = await call.questions.ask(`waterfall ${runId} ${JSON.stringify(call.query)}`, () =>
        readWaterfall(call.pawl.internals.store, runId, call.query),
      );
      return { json: waterfallView(waterfall, call.writer, { runId }) };
    },
  ),
];
