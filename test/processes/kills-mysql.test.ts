import { testKills } from "./kills.js";

testKills("mysql");
