// No database at all: what the engine itself costs.

export async function openMemory() {
  return {
    label: "memory (nothing survives; for comparison)",
    url: "memory:",
    statements: () => 0,
    usage: async () => ({}),
    cpuUs: async () => undefined,
    limits: null,
    close: async () => {},
  };
}
