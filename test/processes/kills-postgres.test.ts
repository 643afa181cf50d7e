import { testKills } from "./kills.js";

testKills("postgres");
