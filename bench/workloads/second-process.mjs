// The other process of W4: a worker and nothing else.

import { once } from "node:events";
import { connect } from "pawl";
import { latencyThere } from "./start-latency.mjs";

// The parent process is gone, however it ended.
process.on("disconnect", () => process.exit());

const pawl = await connect(process.argv[2]);
await pawl.worker({ workflows: [latencyThere] }).start();
process.send("ready");
await once(process, "message");
await pawl.close();
process.disconnect();
