// `fetch` over one HTTP/2 connection, as far as Restate's client needs it: Node's own fetch opens an HTTP/1.1
// connection for every request in flight, which halves Restate's throughput.

import { connect } from "node:http2";

export function http2Fetch(origin) {
  const session = connect(origin);
  const fetch = (url, { method, headers, body }) =>
    new Promise((resolve, reject) => {
      const { pathname, search } = new URL(url);
      const stream = session.request({ ...headers, ":method": method, ":path": pathname + search });
      const chunks = [];
      let status;
      stream.on("response", (response) => {
        status = response[":status"];
      });
      stream.on("data", (chunk) => chunks.push(chunk));
      stream.on("error", reject);
      stream.on("end", () => resolve(new Response(status === 204 ? null : Buffer.concat(chunks), { status })));
      stream.end(body);
    });
  return { fetch, close: () => session.close() };
}
