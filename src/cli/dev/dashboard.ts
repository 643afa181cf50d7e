/**
 * The dashboard of `pawl dev`. It runs in the process of the supervisor, with a connection of its own, so that it stays
 * while the worker is replaced.
 */
import type { Pawl } from "../../connect.js";
import { sentenceOf } from "../cli-error.js";
import type { Settings } from "../config.js";
import { addressArgument, DashboardServer } from "../dashboard-server.js";
import { openDatabase } from "../database.js";
import type { Output } from "../output.js";

export class DevDashboard {
  readonly url: string;
  readonly #server: DashboardServer;
  readonly #settings: Settings;
  readonly #out: Output;
  #opened: Promise<Pawl | null> | null = null;

  /** @param port the value of --port */
  static async listen(port: string | undefined, settings: Settings, out: Output): Promise<DevDashboard> {
    return new DevDashboard(await DashboardServer.listen(addressArgument(undefined, port)), settings, out);
  }

  private constructor(server: DashboardServer, settings: Settings, out: Output) {
    this.url = server.url;
    this.#server = server;
    this.#settings = settings;
    this.#out = out;
  }

  /** Opens the database, which the first worker has made. Further calls do nothing. */
  open(): void {
    this.#opened ??= this.#serve().catch((error) => {
      this.#out.note(`The dashboard cannot be served: ${sentenceOf(error)}`);
      return null;
    });
  }

  async close(): Promise<void> {
    await this.#server.close();
    await (await this.#opened)?.close();
  }

  async #serve(): Promise<Pawl> {
    const { pawl } = await openDatabase(this.#settings, this.#out);
    try {
      await this.#server.serve(pawl, { isReadOnly: false, dashboard: {}, workflows: [] });
      return pawl;
    } catch (error) {
      await pawl.close();
      throw error;
    }
  }
}
