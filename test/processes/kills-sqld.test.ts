import { testKills } from "./kills.js";

testKills("sqld");
