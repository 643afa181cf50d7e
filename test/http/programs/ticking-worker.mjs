// A worker in a process of its own. It tells when it works, and ends with the process that started it.

import { connect, workflow } from "pawl";
import { tickingWorkflow } from "./ticking.mjs";

const { url } = JSON.parse(process.argv[2]);
const pawl = await connect(url);
// The server's process must not lose the run when the machine is busy.
await pawl.worker({ workflows: [tickingWorkflow(workflow)], lease: 60_000 }).start();
process.on("disconnect", () => process.exit(0));
process.send({ kind: "ready" });
