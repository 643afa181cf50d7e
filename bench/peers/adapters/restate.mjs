// Restate: a server of its own beside the Node process, which calls the process back over HTTP/2 for every run.

import { RestatePromise, serve, service } from "@restatedev/restate-sdk";
import { connect } from "@restatedev/restate-sdk-clients";
import { handlers } from "../handlers.mjs";
import { http2Fetch } from "../http2-fetch.mjs";
import { freePort, startRestateServer } from "../restate-server.mjs";
import { processUsage } from "../usage.mjs";

const inFlight = 200;
// The default of 24 is for larger machines; on two cores, a few are faster by a quarter.
const partitions = 4;

export const restate = {
  settings: `its own server (fsync on, ${partitions} partitions), HTTP/2 both ways, ${inFlight} calls in flight`,
  sizes: { W1: 2000, W2: 600, W3: 800, W4: 200, W5s: 1000, W5c: 1000 },

  async open() {
    const server = await startRestateServer({ RESTATE_DEFAULT_NUM_PARTITIONS: partitions });
    const bench = service({
      name: "bench",
      handlers: Object.fromEntries(
        Object.entries(handlers).map(([name, handler]) => [name, (ctx, input) => handler(withOurNames(ctx), input)]),
      ),
    });
    const port = await serve({ services: [bench], port: await freePort(), logger });
    await post(`${server.adminUrl}/deployments`, { uri: `http://127.0.0.1:${port}` });
    const { fetch, close } = http2Fetch(server.ingressUrl);
    const client = connect({ url: server.ingressUrl, fetch }).serviceClient({ name: "bench" });
    return {
      usage: () => processUsage(server.pid),
      // A call is answered when its run is complete.
      run: (name, input) => client[name](input),
      runMany: async (name, inputs) => {
        const rest = inputs.values();
        const caller = async () => {
          for (const input of rest) await client[name](input);
        };
        await Promise.all(Array.from({ length: inFlight }, caller));
      },
      completed: async (name) => {
        const sql = `SELECT count(*) AS n FROM sys_invocation
          WHERE target_handler_name = '${name}' AND status = 'completed' AND completion_result = 'success'`;
        return (await post(`${server.adminUrl}/query`, { query: sql })).rows[0].n;
      },
      close: async () => {
        close();
        await server.stop();
      },
    };
  },
};

/** By default there are two lines on the console for every run. */
const logger = ({ level }, message, ...rest) => {
  if (level === "error") console.error(message, ...rest);
};

const withOurNames = (ctx) => ({
  step: (name, body) => ctx.run(name, body),
  all: (promises) => RestatePromise.all(promises),
  children: (name, inputs) => {
    const client = ctx.serviceClient({ name: "bench" });
    return RestatePromise.all(inputs.map((input) => client[name](input)));
  },
});

async function post(url, body) {
  const headers = { "content-type": "application/json", accept: "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`Restate refuses ${url}: ${await response.text()}`);
  return response.json();
}
