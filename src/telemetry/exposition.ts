/** Counters, histograms and gauges in the text format that Prometheus reads (version 0.0.4). */

export type Labels = Readonly<Record<string, string>>;

export const contentType = "text/plain; version=0.0.4; charset=utf-8";

export class Counter {
  readonly #head: string;
  readonly #name: string;
  readonly #values = new Map<string, number>();

  constructor(name: string, help: string) {
    this.#name = name;
    this.#head = headOf(name, help, "counter");
  }

  add(labels: Labels, count = 1): void {
    const key = renderLabels(labels);
    this.#values.set(key, (this.#values.get(key) ?? 0) + count);
  }

  render(): string {
    return [this.#head, ...[...this.#values].map(([labels, value]) => `${this.#name}{${labels}} ${value}`)].join("\n");
  }
}

interface Series {
  /** How many values fell into each bucket, not cumulated; the last bucket has no bound. */
  readonly counts: number[];
  sum: number;
}

export class Histogram {
  readonly #head: string;
  readonly #name: string;
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Series>();

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name;
    this.#bounds = bounds;
    this.#head = headOf(name, help, "histogram");
  }

  record(labels: Labels, value: number): void {
    const key = renderLabels(labels);
    let series = this.#series.get(key);
    if (series === undefined)
      this.#series.set(key, (series = { counts: new Array(this.#bounds.length + 1).fill(0), sum: 0 }));
    const boundIndex = this.#bounds.findIndex((bound) => value <= bound);
    const bucketIndex = boundIndex < 0 ? this.#bounds.length : boundIndex;
    series.counts[bucketIndex] = (series.counts[bucketIndex] as number) + 1;
    series.sum += value;
  }

  render(): string {
    return [this.#head, ...[...this.#series].flatMap(([labels, series]) => this.#lines(labels, series))].join("\n");
  }

  #lines(labels: string, { counts, sum }: Series): string[] {
    let cumulativeCount = 0;
    const buckets = counts.map((count, index) => {
      cumulativeCount += count;
      return `${this.#name}_bucket{${labels},le="${this.#bounds[index] ?? "+Inf"}"} ${cumulativeCount}`;
    });
    return [...buckets, `${this.#name}_sum{${labels}} ${sum}`, `${this.#name}_count{${labels}} ${cumulativeCount}`];
  }
}

export function renderGauge(name: string, help: string, values: readonly (readonly [Labels, number])[]): string {
  return [
    headOf(name, help, "gauge"),
    ...values.map(([labels, value]) => `${name}${inBraces(renderLabels(labels))} ${value}`),
  ].join("\n");
}

const inBraces = (labels: string) => (labels === "" ? "" : `{${labels}}`);
const headOf = (name: string, help: string, type: string) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}`;

const renderLabels = (labels: Labels): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value.replace(/["\\\n]/g, (char) => (char === "\n" ? "\\n" : `\\${char}`))}"`)
    .join(",");
