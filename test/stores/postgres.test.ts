import { testConformance } from "./conformance.js";

testConformance("postgres", { notifiesAcrossInstances: true });
