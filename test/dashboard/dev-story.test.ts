/** The first ten minutes: install the package, `npx pawl dev`, open the address, start a run, signal it, see it fail, retry it. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { installPackage } from "../support/installed-package.js";
import { inBrowser } from "./support/browser.js";
import { openPage } from "./support/watched-page.js";

const root = fileURLToPath(new URL("../../", import.meta.url));

const program = `
import { existsSync } from "node:fs";
import { PermanentError, workflow } from "pawl";
import { z } from "zod";

export const order = workflow(
  "order",
  { input: z.object({ sku: z.string(), cents: z.number().int() }) },
  async (ctx, { sku, cents }) => {
    const shelf = await ctx.step("reserve", () => "shelf of " + sku);
    const approval = await ctx.waitForSignal<{ by: string }>("approved");
    await ctx.step("ship", () => {
      if (!existsSync("label-printer")) throw new PermanentError("The label printer is off");
      return "sent for " + cents;
    });
    return { shelf, approvedBy: approval?.by };
  },
);
`;

/** The output of a process, and when it contains a text. */
class Output {
  text = "";
  #look: () => void = () => {};

  constructor(child: ChildProcess) {
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (data) => {
        this.text += String(data);
        this.#look();
      });
    child.once("exit", () => this.#look());
  }

  match(pattern: RegExp, child: ChildProcess): Promise<RegExpExecArray> {
    return new Promise((resolve, reject) => {
      this.#look = () => {
        const found = pattern.exec(this.text);
        if (found !== null) resolve(found);
        else if (child.exitCode !== null) reject(new Error(`The command ended without ${pattern}:\n${this.text}`));
      };
      this.#look();
    });
  }
}

async function beginDev(): Promise<{ readonly project: string; readonly url: string }> {
  const folder = mkdtempSync(join(tmpdir(), "pawl-dev-"));
  const project = join(folder, "shop");
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  await installPackage(folder, project);
  symlinkSync(join(root, "node_modules/zod"), join(project, "node_modules/zod"));
  mkdirSync(join(project, "node_modules/.bin"));
  // As npm does when it installs a package.
  chmodSync(join(project, "node_modules/pawl/dist/cli/main.js"), 0o755);
  symlinkSync("../pawl/dist/cli/main.js", join(project, "node_modules/.bin/pawl"));
  writeFileSync(join(project, "workflows.ts"), program);
  const { PAWL_URL: _, DATABASE_URL: __, ...env } = process.env;
  // Its own process group, because npx starts another process, which starts the worker.
  const options = {
    cwd: project,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"] as ["ignore", "pipe", "pipe"],
  };
  const child = spawn("npx", ["--no-install", "pawl", "dev", "workflows.ts", "--port", "0"], options);
  const exited = new Promise((resolve) => child.once("exit", resolve));
  onTestFinished(async () => {
    if (child.exitCode === null) process.kill(-(child.pid as number), "SIGTERM");
    await exited;
  });
  const [, url = ""] = await new Output(child).match(/Dashboard: .*?(http:\/\/127\.0\.0\.1:\d+\/)/, child);
  return { project, url };
}

inBrowser(() => {
  test("from the tarball to a run that was started, signaled, failed and retried in the browser", async () => {
    const { project, url } = await beginDev();
    expect(existsSync(join(project, "pawl.db"))).toBe(true);
    const { page } = await openPage(url);
    const main = page.getByRole("main");

    await page.getByRole("navigation").getByRole("link", { name: "Workflows" }).click();
    await main.getByRole("link", { name: "order", exact: true }).first().click();
    await page.getByRole("heading", { level: 1, name: "order" }).waitFor();
    await main
      .getByRole("button", { name: "Start" })
      .or(main.getByRole("link", { name: "Start" }))
      .first()
      .click();
    const form = page.getByRole("dialog", { name: "Start order" });
    await form.getByLabel(/^sku/i).fill("A-1");
    await form.getByLabel(/^cents/i).fill("4200");
    await form.getByRole("button", { name: "Start", exact: true }).click();

    await page.waitForURL(/\/runs\/[0-9a-f-]{36}/);
    const firstRun = new URL(page.url()).pathname;
    await main
      .getByText(/It waits for the signal .approved./)
      .first()
      .waitFor();
    await main.getByText("reserve", { exact: true }).first().waitFor();
    expect(await main.getByText("ship", { exact: true }).count()).toBe(0);

    await main.getByRole("button", { name: "Signal", exact: true }).click();
    const signal = page.getByRole("dialog", { name: "Signal: order" });
    // The run may have been shown before it waited; the dialog offers a name only if it knows one.
    await signal.getByLabel("Name of the signal").fill("approved");
    await signal.getByLabel("Payload").fill('{ "by": "ada" }');
    await signal.getByRole("button", { name: "Send the signal" }).click();
    // The page is not loaded again: the timeline grows, and the header says what happened.
    await main.getByText("ship", { exact: true }).first().waitFor();
    await main.getByText("The label printer is off").first().waitFor();

    writeFileSync(join(project, "label-printer"), "on");
    await main.getByRole("button", { name: "Retry", exact: true }).click();
    const retry = page.getByRole("dialog", { name: "Retry: order" });
    await retry.getByLabel("Reason").fill("The printer is on again.");
    await retry.getByRole("button", { name: "Retry", exact: true }).click();
    await main.getByText("Retry of").waitFor();
    await main.getByText(/^It completed at/).waitFor();
    expect(new URL(page.url()).pathname).not.toBe(firstRun);
    await page.getByRole("tab", { name: "Data" }).click();
    await page.getByRole("region", { name: "Output" }).getByText('"shelf of A-1"').waitFor();
  });
});
