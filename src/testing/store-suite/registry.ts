/** The registry of workflows: null keeps the stored value, any other value overwrites it. */
import type { WorkflowRegistration } from "../../store/contract/store.js";
import { uniqueName } from "./builders.js";
import type { Fixture } from "./fixture.js";

export function registryTests(fixture: Fixture): void {
  const { test, expect } = fixture;

  function registration(name: string, rest: Partial<WorkflowRegistration> = {}): WorkflowRegistration {
    return { name, queue: null, version: null, signature: null, graph: null, ...rest };
  }

  test("a workflow that is not registered is null", async () => {
    expect(await fixture.store.workflow(uniqueName("none"))).toBeNull();
  });

  test("a new workflow gets a queue of its own name and no version, unless the registration names them", async () => {
    const [bare, full] = [uniqueName("bare"), uniqueName("full")];
    const before = await fixture.store.now();
    const settings = { queue: "mails", version: "v3", signature: "s", graph: '{"nodes":[]}' };
    await fixture.store.registerWorkflows([registration(bare), registration(full, settings)]);
    const found = await fixture.store.workflow(bare);
    expect(found).toEqual({
      name: bare,
      queue: bare,
      version: "",
      signature: null,
      graph: null,
      createdAt: found?.createdAt,
    });
    expect(found?.createdAt).toBeGreaterThanOrEqual(before);
    expect(await fixture.store.workflow(full)).toMatchObject({ name: full, ...settings });
  });

  test("null keeps the stored value, other values overwrite it, and the time of creation stays", async () => {
    const name = uniqueName("again");
    const first = { queue: "q1", version: "v1", signature: "s1", graph: "g1" };
    await fixture.store.registerWorkflows([registration(name, first)]);
    const registered = await fixture.store.workflow(name);
    await fixture.store.registerWorkflows([registration(name)]);
    expect(await fixture.store.workflow(name)).toEqual(registered);
    await fixture.store.registerWorkflows([registration(name, { version: "v2", graph: "g2" })]);
    expect(await fixture.store.workflow(name)).toEqual({ ...registered, version: "v2", graph: "g2" });
    await fixture.store.registerWorkflows([registration(name, { queue: "q2", signature: "s2", version: "" })]);
    const last = { queue: "q2", version: "", signature: "s2", graph: "g2" };
    expect(await fixture.store.workflow(name)).toEqual({ ...registered, ...last });
  });

  test("a workflow that was registered without settings gets them later", async () => {
    const name = uniqueName("bare");
    await fixture.store.registerWorkflows([registration(name)]);
    await fixture.store.registerWorkflows([registration(name, { queue: "q", signature: "s" })]);
    expect(await fixture.store.workflow(name)).toMatchObject({ queue: "q", version: "", signature: "s", graph: null });
  });

  test("names that differ only in case are different", async () => {
    const name = uniqueName("Case");
    const lower = name.toLowerCase();
    await fixture.store.registerWorkflows([registration(name, { queue: "a" }), registration(lower, { queue: "b" })]);
    expect(await fixture.store.workflow(name)).toMatchObject({ name, queue: "a" });
    expect(await fixture.store.workflow(lower)).toMatchObject({ name: lower, queue: "b" });
    expect(await fixture.store.workflow(name.toUpperCase())).toBeNull();
  });

  test("many processes register many workflows at once, and an empty list is accepted", async () => {
    const other = await fixture.openAnother();
    const names = Array.from({ length: 50 }, () => uniqueName("many"));
    const registrations = names.map((name) => registration(name, { queue: "q", graph: "g" }));
    await Promise.all(
      [fixture.store, other, fixture.store, other].map((store, index) =>
        store.registerWorkflows(index % 2 === 0 ? registrations : registrations.toReversed()),
      ),
    );
    for (const name of names)
      expect(await fixture.store.workflow(name)).toMatchObject({ name, queue: "q", graph: "g" });
    await fixture.store.registerWorkflows([]);
  });
}
