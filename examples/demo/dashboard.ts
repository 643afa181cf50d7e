/** The dashboard, served by the demo's own process, which no one kills. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Pawl } from "pawl";
import { httpHandler, nodeListener } from "pawl/http";

export interface ServedDashboard {
  readonly url: string;
  close(): void;
}

const usualPort = 4000;

export async function serveDashboard(pawl: Pawl): Promise<ServedDashboard> {
  const server = createServer(nodeListener(httpHandler(pawl, { dashboard: { label: "demo" } })));
  // Another program may have the usual port; 0 is any free one.
  await listen(server, usualPort).catch(() => listen(server, 0));
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, close };
}

function listen(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => {
      server.off("error", reject);
      resolve();
    });
  });
}
