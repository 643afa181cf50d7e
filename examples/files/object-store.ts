/** A small object store, in memory, in place of S3: `GET`, `PUT` and listing by prefix. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";

export interface StoreRequest {
  /** Such as "GET docs/report.txt". */
  readonly what: string;
  /** The name that the client gives itself. */
  readonly by: string;
}

export interface Refusal {
  readonly status: number;
  readonly retryAfter?: number;
}

export class ObjectStore {
  readonly objects = new Map<string, Buffer>();
  readonly #server: Server = createServer((request, response) => void this.#answer(request, response));

  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Called before a request is served; it may delay or refuse the request. */
  protected async admit(request: StoreRequest): Promise<Refusal | null> {
    console.log(`${request.what}  ${request.by}`);
    return null;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request);
    const path = (request.url ?? "/").slice(1);
    const by = request.headers["user-agent"] ?? "";
    const refusal = await this.admit({ what: `${request.method} ${path}`, by });
    if (refusal !== null) {
      if (refusal.retryAfter !== undefined) response.setHeader("retry-after", refusal.retryAfter);
      response.writeHead(refusal.status).end();
    } else if (request.method === "PUT") {
      this.objects.set(path, body);
      response.writeHead(200).end();
    } else if (path.includes("/?prefix=")) {
      response.end(JSON.stringify(this.#keysWith(path)));
    } else {
      const object = this.objects.get(path);
      response.writeHead(object === undefined ? 404 : 200).end(object);
    }
  }

  #keysWith(path: string): string[] {
    const [bucket = "", prefix = ""] = path.split("/?prefix=");
    const inBucket = [...this.objects.keys()].filter((one) => one.startsWith(`${bucket}/${prefix}`));
    return inBucket.map((one) => one.slice(bucket.length + 1)).sort();
  }
}
