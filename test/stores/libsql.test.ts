import { testConformance } from "./conformance.js";

testConformance("libsql", { notifiesAcrossInstances: true });
