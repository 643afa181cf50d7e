import { testConformance } from "./conformance.js";

testConformance("mysql", { notifiesAcrossInstances: false });
