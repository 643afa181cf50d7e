/** A run that writes hundreds of events: steps, and signals that it waits for. For tests and for their worker process. */
export const stepCount = 120;
export const signalCount = 60;

/** @param {typeof import("pawl").workflow} workflow of the library that the process uses */
export const tickingWorkflow = (workflow) =>
  workflow("ticking", async (ctx) => {
    let sum = 0;
    for (let index = 0; index < stepCount; index += 1) sum += await ctx.step(`step ${index}`, () => index);
    for (let index = 0; index < signalCount; index += 1) {
      const tick = await ctx.waitForSignal("tick");
      sum += tick.value;
      await ctx.step(`after tick ${index}`, () => "x".repeat(500));
    }
    return sum;
  });
