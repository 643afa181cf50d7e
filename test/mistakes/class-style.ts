import type { Mistake } from "./mistake.js";

export const mistakes: readonly Mistake[] = [
  {
    what: "a hero that nothing loads",
    code: `class Mistake extends Workflow<User> {
  static {
    this.step("send_welcome", () => {});
  }
}`,
    compiler:
      "Property 'loadHero' is missing in type 'typeof Mistake' but required in type '{ readonly loadHero: (id: string) => Awaitable<User | null | undefined>; }'.",
  },
  {
    what: "a loader of something else",
    code: `class Mistake extends Workflow<User> {
  static loadHero = async (id: string) => ({ title: id });
  static {
    this.step("send_welcome", () => {});
  }
}`,
    compiler: "Type '{ title: string; }' is missing the following properties from type 'User': id, name",
  },
  {
    what: "a loader that takes a number",
    code: `class Mistake extends Workflow<User> {
  static loadHero = (id: number) => users.find(String(id));
  static {
    this.step("send_welcome", () => {});
  }
}`,
    compiler: "Type 'string' is not assignable to type 'number'.",
  },
  {
    what: "a hero that may be gone, and a class that does not expect it",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.options({ mayProceedWithoutHero: true });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Type 'true' is not assignable to type 'false | ExpectsWorkflowOf<User | null> | undefined'.",
  },
  {
    what: "a misspelt member of the hero",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_welcome", (w) => console.log(w.hero.nam));
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Property 'nam' does not exist on type 'User'. Did you mean 'name'?",
  },
  {
    what: "a misspelt method",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_remindr");
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Argument of type '\"send_remindr\"' is not assignable to parameter of type '\"send_reminder\" | StepFunction<typeof Mistake>'.",
  },
  {
    what: "a misspelt method with options",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_remindr", { wait: "2 days" });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Argument of type '{ wait: string; }' is not assignable to parameter of type 'OptionsOfMethod<\"send_reminder\"> | StepFunction<typeof Mistake> | JobStepOptions<Mistake, string | JobDefinition<any, any>>'.",
  },
  {
    what: "a misspelt method, from untyped code",
    code: `class Mistake extends Workflow {
  static {
    (this as any).step("send_remindr", { wait: "2 days" });
  }
  async send_reminder() {}
  async send_welcome() {}
}
await pawl.start(Mistake);`,
    sentence:
      'Step "send_remindr" of workflow Mistake has no function, and the class has no method of that name; did you mean "send_reminder"? Its methods are "send_reminder", "send_welcome".',
  },
  {
    what: "a misspelt option of a step",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_reminder", { wiat: "2 days" });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, and 'wiat' does not exist in type 'StepDeclarationOptions<Mistake> | StepFunction<typeof Mistake> | JobStepOptions<Mistake, string | JobDefinition<any, any>>'.",
  },
  {
    what: "a misspelt option of a class",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.options({ queu: "mail" });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, but 'queu' does not exist in type 'ClassOptions<Mistake>'. Did you mean to write 'queue'?",
  },
  {
    what: "a misspelt condition",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_reminder", { skipIf: "unsubscribd" });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Type '\"unsubscribd\"' is not assignable to type 'Condition<Mistake> | undefined'. Did you mean '\"unsubscribed\"'?",
  },
  {
    what: "a misspelt condition, from untyped code",
    code: `class Mistake extends Workflow {
  static {
    (this as any).step("a", { skipIf: "unsubscribd" }, () => {});
  }
  get unsubscribed() {
    return true;
  }
}
await pawl.start(Mistake);`,
    sentence:
      'Workflow Mistake has a condition "unsubscribd", but no member of that name; did you mean "unsubscribed"? Its members are "unsubscribed".',
  },
  {
    what: "a condition that is a promise",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_reminder", { skipIf: users.find("1") });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Type 'Promise<User | null>' is not assignable to type 'Condition<Mistake> | undefined'.",
  },
  {
    what: "a promise in place of a step's function",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_welcome", mail.welcome(ada));
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Argument of type 'Promise<void>' is not assignable to parameter of type 'OptionsOfMethod<\"send_reminder\"> | StepFunction<typeof Mistake> | JobStepOptions<Mistake, string | JobDefinition<any, any>>'.",
  },
  {
    what: "a date to wait for",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_reminder", { wait: new Date(2030, 0, 1) });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Type 'Date' is not assignable to type 'Duration | undefined'.",
  },
  {
    what: "a date to wait for, from untyped code",
    code: `class Mistake extends Workflow {
  static {
    const wait: any = new Date(Date.UTC(2030, 0, 1));
    this.step("send_reminder", { wait }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence:
      'The wait of step "send_reminder" of workflow Mistake, 2030-01-01T00:00:00.000Z, is a point in time, not a length of time (for a date there are sleepUntil(name, date) and startAt); write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a wait in a unit that does not exist",
    code: `class Mistake extends Workflow {
  static {
    this.step("send_reminder", { wait: "2 dayz" }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence:
      'The wait of step "send_reminder" of workflow Mistake, "2 dayz", has an unknown unit "dayz"; write "2 days", "1h 30m", "250ms", a number of milliseconds or { days: 2 }.',
  },
  {
    what: "a misspelt neighbour",
    code: `class Mistake extends Workflow {
  static {
    this.step("send_welcome", () => {});
    this.step("audit", { afterStep: "send_welcom" }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence:
      'Step "audit" of workflow Mistake has afterStep: "send_welcom", which is not one of its steps; did you mean "send_welcome"? Its other steps are "send_welcome".',
  },
  {
    what: "two neighbours",
    code: `class Mistake extends Workflow {
  static {
    this.step("a", () => {});
    this.step("b", { afterStep: "a", beforeStep: "a" }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence: 'Step "b" of Mistake has both beforeStep and afterStep; remove one of them.',
  },
  {
    what: "a misspelt dependency",
    code: `class Mistake extends Workflow {
  static {
    this.step("validate", () => {});
    this.task("check", { dependsOn: "valdiate" }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence:
      '"check" of workflow Mistake depends on "valdiate", which does not exist; did you mean "validate"? Its other steps and tasks are "validate".',
  },
  {
    what: "dependencies in a circle",
    code: `class Mistake extends Workflow {
  static {
    this.task("a", { dependsOn: "b" }, () => {});
    this.task("b", { dependsOn: "a" }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence: "The dependencies of workflow Mistake form a cycle: a → b → a. Remove one of them.",
  },
  {
    what: "a place in the chain for a task",
    code: `class Mistake extends Workflow {
  static {
    this.step("a", () => {});
    this.task("b", { afterStep: "a" }, () => {});
  }
}
await pawl.start(Mistake);`,
    sentence:
      'Task "b" of workflow Mistake has beforeStep or afterStep, which are for steps; use dependsOn for a task.',
  },
  {
    what: "two steps of one name",
    code: `class Mistake extends Workflow {
  static {
    this.step("a", () => {});
    this.step("a", () => {});
  }
}
await pawl.start(Mistake);`,
    sentence:
      'Workflow Mistake has two steps called "a"; rename one of them. To change an inherited step, override its method.',
  },
  {
    what: "a step with neither a function nor a method",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step({ wait: "2 days" });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, and 'wait' does not exist in type 'StepFunction<typeof Mistake>'.",
  },
  {
    what: "a method that hides one of the context",
    code: `class Mistake extends Workflow {
  async sleep() {}
}`,
    compiler:
      "Class 'Workflow<unknown, void, void>' defines instance member property 'sleep', but extended class 'Mistake' defines it as instance member function.",
  },
  {
    what: "a field that hides one of the context",
    code: `class Mistake extends Workflow {
  static {
    this.step("a", () => {});
  }
  override skip = (): never => {
    throw new Error("skipped");
  };
}
await pawl.start(Mistake);`,
    sentence: 'Workflow Mistake has a member "skip", which would hide that of its context; rename it.',
  },
  {
    what: "many starts of a class that needs a hero",
    code: "await pawl.startMany(Goodbye, [undefined, undefined]);",
    compiler:
      "Argument of type 'typeof Goodbye' is not assignable to parameter of type 'typeof Goodbye & NeedsAHeroOfItsOwn'.",
  },
  {
    what: "a policy for exceptions that does not exist",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.options({ onException: "retry" });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Type '\"retry\"' is not assignable to type 'ExceptionPolicy | undefined'.",
  },
  {
    what: "a negative number of reattempts",
    code: `class Mistake extends Workflow {
  static {
    this.options({ maxReattempts: -1 });
  }
}
await pawl.start(Mistake);`,
    sentence: "The maxReattempts of workflow Mistake must be a whole number of at least 0, not -1.",
  },
  {
    what: "attempts in the backoff of a step",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_reminder", { retry: { attempts: 3 } });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, and 'attempts' does not exist in type 'Omit<RetryOptions, \"attempts\" | \"retryIf\">'.",
  },
  {
    what: "an option of resumable steps on a plain one",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_reminder", { maxIterations: 5 });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, and 'maxIterations' does not exist in type 'StepDeclarationOptions<Mistake> | StepFunction<typeof Mistake> | JobStepOptions<Mistake, string | JobDefinition<any, any>>'.",
  },
  {
    what: "arguments that the job does not take",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("picture", { job: resize, args: { fiel: "a.png" } });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, and 'fiel' does not exist in type '((w: Mistake) => Awaitable<{ file: string; }>) | { file: string; }'.",
  },
  {
    what: "a job without its arguments",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("picture", { job: resize });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Property 'args' is missing in type '{ job: JobDefinition<{ file: string; }, string>; }' but required in type '{ readonly args: ((w: Mistake) => Awaitable<{ file: string; }>) | { file: string; }; }'.",
  },
  {
    what: "a job and a function",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("picture", { job: resize, args: { file: "a.png" } }, () => {});
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Object literal may only specify known properties, and 'job' does not exist in type 'StepDeclarationOptions<Mistake>'.",
  },
  {
    what: "a misspelt member of this in a step's function",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.step("send_welcome", function () {
      console.log(this.hreo);
    });
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Property 'hreo' does not exist on type 'Mistake'.",
  },
  {
    what: "a number in place of a collection",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.resumableStep("each", (_w, iter) => iter.over(5, () => {}));
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Argument of type 'number' is not assignable to parameter of type 'Iterable<unknown>'.",
  },
  {
    what: "pages without a key",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.resumableStep("each", (_w, iter) => iter.records({ fetch: () => [ada] }, () => {}));
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler:
      "Property 'key' is missing in type '{ fetch: () => User[]; }' but required in type 'Pages<User, unknown>'.",
  },
  {
    what: "a key that the rows do not have",
    code: `class Mistake extends Workflow<User> {
  static readonly heroType = "User";
  static loadHero = (id: string) => users.find(id);
  static {
    this.resumableStep("each", (_w, iter) => iter.records({ fetch: () => [ada], key: "ident" }, () => {}));
  }
  get unsubscribed() {
    return true;
  }
  async send_reminder() {}
}`,
    compiler: "Type '\"ident\"' is not assignable to type '((item: User) => unknown) | keyof User'.",
  },
  {
    what: "a hook that is told about something else",
    code: `class Mistake extends Workflow {
  override beforeStepExecution(_step: string) {}
}`,
    compiler:
      "Property 'beforeStepExecution' in type 'Mistake' is not assignable to the same property in base type 'Workflow<unknown, void, void>'.",
  },
  {
    what: "a step that is declared when the class is in use",
    code: `class Mistake extends Workflow {
  static {
    this.step("a", () => {});
  }
}
await pawl.start(Mistake);
Mistake.step("b", () => {});`,
    sentence:
      "Workflow Mistake is already in use; call step in its static block, before it is started or given to a worker.",
  },
  {
    what: "a start without the hero",
    code: "await pawl.start(Goodbye);",
    compiler: "Expected 2-3 arguments, but got 1.",
  },
  {
    what: "a start with the hero of another type",
    code: 'await pawl.start(Goodbye, { hero: { type: "Company", id: "1" } });',
    compiler: "Type '\"Company\"' is not assignable to type '\"User\"'.",
  },
  {
    what: "a start with a numeric id",
    code: 'await pawl.start(Goodbye, { hero: { type: "User", id: ada.id } });',
    compiler: "Type 'number' is not assignable to type 'string'.",
  },
  {
    what: "a start with a numeric id, from untyped code",
    code: `const row: any = { id: 42 };
await pawl.start(Goodbye, { hero: { type: "User", id: row.id } });`,
    sentence:
      "The hero's id is the number 42, but a hero's id must be a string; write { type: \"User\", id: String(id) }, or use heroOf(hero) of the class.",
  },
  {
    what: "a start with the hero itself",
    code: "await pawl.start(Goodbye, { hero: ada });",
    compiler: "Property 'type' is missing in type 'User' but required in type 'HeroRef<\"User\">'.",
  },
  {
    what: "a start with the hero itself, from untyped code",
    code: `const hero: any = ada;
await pawl.start(Goodbye, { hero });`,
    sentence:
      'The hero of a run of workflow "Goodbye" is given by type and id, { type: "User", id: "…" }, not as an object with id, name.',
  },
  {
    what: "a start without the input",
    code: "await pawl.start(Onboarding, { hero: Onboarding.heroOf(ada) });",
    compiler: "Expected 3 arguments, but got 2.",
  },
  {
    what: "a reference to the wrong hero",
    code: 'Goodbye.heroOf({ id: 1, title: "not a user" });',
    compiler:
      "Object literal may only specify known properties, and 'title' does not exist in type 'User & { readonly id: HeroId; }'.",
  },
  {
    what: "a reference to a hero without an id, from untyped code",
    code: `const hero: any = { name: "Ada" };
Goodbye.heroOf(hero);`,
    sentence:
      "Goodbye.heroOf(hero) takes a hero with an `id`, or the id itself: a string or a whole number, not undefined.",
  },
  {
    what: "an instance in place of the class",
    code: "await pawl.start(new Goodbye(), { hero: Goodbye.heroOf(ada) });",
    compiler: "Argument of type 'Goodbye' is not assignable to parameter of type 'AnyWorkflow'.",
  },
  {
    what: "a class that is not a workflow",
    code: `class Mistake {}
await pawl.start(Mistake);`,
    compiler: "Argument of type 'typeof Mistake' is not assignable to parameter of type 'AnyWorkflow'.",
  },
  {
    what: "a second run for the same hero",
    code: `await pawl.start(Goodbye, { hero: Goodbye.heroOf(ada) });
await pawl.start(Goodbye, { hero: Goodbye.heroOf(ada) });`,
    sentence:
      'User 42 already has an active run of workflow "Goodbye": <id>. Wait for it, cancel it, or start with allowMultiple or onConflict.',
  },
  {
    what: "a misspelt step to resume at",
    code: `class Mistake extends Workflow {
  static {
    this.step("send_goodbye", (w) => w.pause("look at it"));
  }
}
const run = await pawl.start(Mistake);
await paused(pawl, run, Mistake);
await run.resumeAt("send_godbye");
return await paused(pawl, run, Mistake);`,
    sentence:
      'Workflow "Mistake" has no step "send_godbye" for resumeAt(step); did you mean "send_goodbye"? Its steps are "send_goodbye".',
  },
];
