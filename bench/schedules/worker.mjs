// A worker that tells how late each run has begun.

import { connect, workflow } from "pawl";

const tick = workflow("tick", async (ctx) => {
  process.send({ begunLateMs: Date.now() - ctx.schedule.scheduledFor.getTime() });
});
const pawl = await connect(process.argv[2]);
await pawl.worker({ workflows: [tick] }).start();
process.on("disconnect", () => process.exit());
process.send({ ready: true });
