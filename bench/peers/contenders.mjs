// The contenders. An adapter is loaded only in the process that measures it, so a peer that is not installed affects no
// other.

export const contenders = [
  { name: "pawl", label: "Pawl", package: "pawl", load: async () => (await import("./adapters/pawl.mjs")).pawl },
  {
    name: "dbos-direct",
    label: "DBOS, direct",
    package: "@dbos-inc/dbos-sdk",
    load: async () => (await import("./adapters/dbos.mjs")).dbosDirect,
  },
  {
    name: "dbos-queue",
    label: "DBOS, queue",
    package: "@dbos-inc/dbos-sdk",
    load: async () => (await import("./adapters/dbos.mjs")).dbosQueue,
  },
  {
    name: "openworkflow",
    label: "openworkflow",
    package: "openworkflow",
    load: async () => (await import("./adapters/openworkflow.mjs")).openworkflow,
  },
  {
    name: "restate",
    label: "Restate",
    package: "@restatedev/restate-server",
    withoutDatabase: true,
    load: async () => (await import("./adapters/restate.mjs")).restate,
  },
  {
    name: "graphile-worker",
    label: "graphile-worker",
    package: "graphile-worker",
    load: async () => (await import("./adapters/graphile-worker.mjs")).graphileWorker,
  },
];
