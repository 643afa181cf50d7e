import { testConformance } from "./conformance.js";

testConformance("sqld", { notifiesAcrossInstances: false });
