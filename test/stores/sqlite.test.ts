import { testConformance } from "./conformance.js";

testConformance("sqlite", { notifiesAcrossInstances: true });
