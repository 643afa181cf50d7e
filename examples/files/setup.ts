/**
 * Before the first worker: makes the tables, and names that triggers may use. Does no harm when it is done again.
 *
 *     setup.js process_file process_file_v2
 */
import { connect } from "pawl";

const pawl = await connect(process.env.PAWL_URL);
for (const name of process.argv.slice(2)) await pawl.createWorkflow(name);
await pawl.close();
