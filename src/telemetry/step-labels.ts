/** Names of steps as labels of figures. A name may be made of data, and each label is a time series with a price. */

const maxNamesPerWorkflow = 200;
const nodeIdPattern = /^n_[0-9a-f]{8}$/;
const repetition = /#\d+/g;

export class StepLabels {
  readonly #names = new Map<string, Set<string>>();

  labelFor(workflow: string, key: string): string {
    // The ids of nodes are random: what they run is known by its job.
    const name = nodeIdPattern.test(key) ? "node" : key.replace(repetition, "");
    let names = this.#names.get(workflow);
    if (names === undefined) this.#names.set(workflow, (names = new Set()));
    if (names.has(name)) return name;
    if (names.size >= maxNamesPerWorkflow) return "other";
    names.add(name);
    return name;
  }
}
