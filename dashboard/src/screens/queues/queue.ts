import type { Answer } from "../../api/api.js";

export type Queue = Answer<"listQueues">["queues"][number];
