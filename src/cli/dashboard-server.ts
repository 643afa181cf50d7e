/**
 * Serves the dashboard to this machine; shared by `pawl dashboard` and `pawl dev`. There is no login, so other machines
 * never reach it.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import type { Pawl } from "../connect.js";
import type { AnyWorkflow } from "../define/resolve.js";
import type { DashboardOptions } from "../http/index.js";
import { integerArgument } from "./arguments.js";
import { CliError } from "./cli-error.js";

export interface Address {
  /** An address or name of this machine, such as "127.0.0.1". */
  readonly host: string;
  /** Null: the first free port from 4000 on. 0: any free port. */
  readonly port: number | null;
}

export interface ServeOptions {
  readonly isReadOnly: boolean;
  readonly dashboard: DashboardOptions;
  /** Workflows whose schemas check the inputs of runs that people start. */
  readonly workflows: readonly AnyWorkflow[];
}

/** The documented port, and how many ports after it are tried before any free one is taken. */
const defaultPort = 4_000;
const triedPorts = 20;

export class DashboardServer {
  readonly url: string;
  readonly #server: Server;
  readonly #setListener: (listener: RequestListener) => void;

  /** Listens at once, so that the address is known. Requests wait until `serve` is called. */
  static async listen({ host, port }: Address): Promise<DashboardServer> {
    if (port !== null) return new DashboardServer(await listenOn(host, port));
    for (let next = defaultPort; next < defaultPort + triedPorts; next++) {
      try {
        return new DashboardServer(await listenOn(host, next));
      } catch (error) {
        if (!(error instanceof PortTakenError)) throw error;
      }
    }
    return new DashboardServer(await listenOn(host, 0));
  }

  private constructor(server: Server) {
    const { address, port, family } = server.address() as AddressInfo;
    this.url = `http://${family === "IPv6" ? `[${address}]` : address}:${port}/`;
    this.#server = server;
    let setListener: (listener: RequestListener) => void = () => {};
    const listener = new Promise<RequestListener>((resolve) => {
      setListener = resolve;
    });
    this.#setListener = setListener;
    server.on("request", (request, response) => void listener.then((listen) => listen(request, response)));
  }

  /** @throws InvalidInputError if the dashboard was not built */
  async serve(pawl: Pawl, { isReadOnly, dashboard, workflows }: ServeOptions): Promise<void> {
    // Loaded here, because most commands of this program do not need it.
    const [{ httpHandler, nodeListener }, { checkHost, originRules }, { remoteAddressOf }] = await Promise.all([
      import("../http/index.js"),
      import("../http/origin-check.js"),
      import("../http/remote-address.js"),
    ]);
    const user = userName();
    const withoutAuthorize = originRules({});
    const handle = httpHandler(pawl, {
      dashboard,
      workflows,
      authorize: (request) => {
        // With an `authorize`, the handler itself serves other machines as well.
        checkHost(new URL(request.url), request.headers, remoteAddressOf(request), withoutAuthorize);
        return { user, access: isReadOnly ? "read" : "all" };
      },
    });
    this.#setListener(nodeListener(handle));
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    // Streams of live updates end only with their clients.
    this.#server.closeAllConnections();
    await closed;
  }
}

/** Checks the values of --host and --port. */
export function addressArgument(host: string | undefined, portText: string | undefined): Address {
  const port = integerArgument("port", portText) ?? null;
  if (port !== null && (port < 0 || port > 65_535)) throw new CliError(`--port is at most 65535, not ${port}.`);
  if (host === undefined || isLoopback(host)) return { host: host ?? "127.0.0.1", port };
  throw new CliError(
    `--host ${host} would let other machines in without a login; mount the dashboard in a server of yours with \`authorize\`: docs/dashboard.md shows how.`,
  );
}

const isLoopback = (host: string) => /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/i.test(host);

class PortTakenError extends CliError {}

function listenOn(host: string, port: number): Promise<Server> {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen(port, host, () => resolve(server));
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new PortTakenError(`Port ${port} is taken; give --port another, or leave it out to get a free one.`);
    case "EACCES":
      return new CliError(`This account may not listen on port ${port}; give --port another, such as 4000.`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new CliError(`This machine has no address ${host}; leave --host out to use 127.0.0.1.`);
    default:
      return error;
  }
}

/** The name that the logs of runs have for commands from the dashboard. A container may have no account for its user. */
function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
