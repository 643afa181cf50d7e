import { testKills } from "./kills.js";

testKills("sqlite");
