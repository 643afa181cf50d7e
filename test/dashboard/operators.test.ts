/** Several people with one run: the second learns what the first has done, and nothing is done twice. */
import { expect, test } from "vitest";
import { inBrowser } from "./support/browser.js";
import { settled } from "./support/screens.js";
import { takeScreenshot } from "./support/screenshots.js";
import { serveWorld } from "./support/world.js";

inBrowser(() => {
  test("a command that another person was faster with is refused, and the dialog says what happened", async () => {
    const world = await serveWorld({
      authorize: (request) => ({ user: request.headers.get("x-user") ?? "nobody", access: "all" }),
    });
    const address = `/runs/${world.runs.pausedByPerson}`;
    const ada = await world.open(address, { headers: { "x-user": "ada" } });
    const bob = await world.open(address, { headers: { "x-user": "bob" }, expected: [/409/] });
    await settled(ada);
    await settled(bob);
    await bob.getByRole("button", { name: "Resume" }).click();
    const bobsDialog = bob.getByRole("dialog", { name: "Resume: order" });
    await bobsDialog.waitFor();

    await ada.getByRole("button", { name: "Resume" }).click();
    const adasDialog = ada.getByRole("dialog", { name: "Resume: order" });
    await adasDialog.getByLabel("Reason").fill("The customer is happy.");
    await adasDialog.getByRole("button", { name: "Resume" }).click();
    await adasDialog.waitFor({ state: "hidden" });

    await bobsDialog.getByRole("button", { name: "Resume" }).click();
    await bobsDialog.getByText("Nothing was done, because the run has changed.").waitFor();
    await bobsDialog.getByRole("list", { name: "What happened meanwhile" }).getByText("by ada").waitFor();
    await takeScreenshot(bob, "state-changed-meanwhile");
    const log = await world.pawl.run(world.runs.pausedByPerson).history();
    const resumes = log.filter(
      ({ type, data }) => type === "command.accepted" && JSON.stringify(data).includes("resume"),
    );
    expect(resumes.length).toBe(1);
  });

  test("what a person does appears for another who looks at the same run", async () => {
    const world = await serveWorld();
    const [ada, bob] = [
      await world.open(`/runs/${world.runs.waiting}`),
      await world.open(`/runs/${world.runs.waiting}`),
    ];
    await settled(ada);
    await settled(bob);
    await ada.getByRole("button", { name: "Pause" }).click();
    const dialog = ada.getByRole("dialog", { name: "Pause: order" });
    await dialog.getByLabel("Reason").fill("A look at the shelf.");
    await dialog.getByRole("button", { name: "Pause" }).click();
    for (const page of [ada, bob])
      await page
        .getByText(/until an operator resumes it: A look at the shelf\./)
        .first()
        .waitFor();
  });
});
