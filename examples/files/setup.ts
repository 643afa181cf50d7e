/**
 * Before the first worker: creates the tables, and registers the names that triggers may use. It is idempotent.
 *
 *     setup.js process_file process_file_v2
 */
import { connect } from "pawl";

const pawl = await connect(process.env.PAWL_URL);
for (const name of process.argv.slice(2)) await pawl.createWorkflow(name);
await pawl.close();
