// Chromium, as the test command needs to know it. It is no database, but it is found, installed and left out like one: the
// tests of the dashboard get the path of its program, and each starts it for itself. The fields are described in
// ../databases.mjs.

import { existsSync } from "node:fs";
import { beside, pathFolders } from "../binaries.mjs";
import { capture } from "../run.mjs";

export const chromium = {
  name: "chromium",
  label: "Chromium",
  programVariable: "PAWL_TEST_CHROMIUM",
  packages: ["chromium-headless-shell"],
  /** Where the first is unknown. */
  otherPackages: ["chromium"],

  findBinaries() {
    const given = process.env.PAWL_TEST_CHROMIUM;
    if (given) return existsSync(given) ? { server: given } : undefined;
    const folders = [
      ...[...pathFolders(), "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"],
      ...["/Applications/Chromium.app/Contents/MacOS", "/Applications/Google Chrome.app/Contents/MacOS"],
    ];
    const names = [
      // Without windows of its own it takes half the processor time, and the pages are the same.
      "chromium-headless-shell",
      "chromium",
      "chromium-browser",
      "google-chrome",
      "google-chrome-stable",
      "Chromium",
      "Google Chrome",
    ];
    return beside(folders, { server: names });
  },

  /** A placeholder of a package that is not installed (Ubuntu has one that asks for a snap) fails here, and not in each test. */
  async tryOut({ server }) {
    await capture(server, ["--version"]);
  },

  version: async ({ server }) => /[\d.]{4,}/.exec(await capture(server, ["--version"]))?.[0] ?? "of unknown version",
};
