// A process that only prunes, so that its statements are not counted among the others'. Arguments: the database's URL.

import { connect } from "pawl";

const pawl = await connect(process.argv[2]);
process.send({ kind: "began" });
const beganAt = performance.now();
const pruned = await pawl.prune({ olderThan: "1 hour" });
process.send({ kind: "done", ...pruned, seconds: (performance.now() - beganAt) / 1_000 });
await pawl.close();
process.disconnect();
