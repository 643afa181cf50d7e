/** The object store of the service, under the eyes of a test: it knows who asked for what, and can hold or refuse. */
import { ObjectStore, type Refusal, type StoreRequest } from "../../examples/files/object-store.js";
import { until } from "../support/waiting.js";

/** A request that is kept waiting. */
export interface Hold {
  /** The pid of the process whose request it is, once it has come. */
  readonly arrived: Promise<number>;
  /** Lets it through. */
  release(): void;
}

type Rule = (request: StoreRequest) => Promise<Refusal | null> | null;

export class WatchedStore extends ObjectStore {
  readonly requests: { readonly what: string; readonly pid: number }[] = [];
  readonly #rules: Rule[] = [];

  put(path: string, text: string): void {
    this.objects.set(path, Buffer.from(text));
  }

  text(path: string): string | undefined {
    return this.objects.get(path)?.toString();
  }

  /** The processes that asked for this, in order: one for each time that the body of a step ran. */
  askedBy(what: string): number[] {
    return this.requests.filter((request) => request.what === what).map(({ pid }) => pid);
  }

  /** Keeps the next request for this waiting; later ones pass. */
  hold(what: string): Hold {
    let release = () => {};
    const released = new Promise<null>((resolve) => {
      release = () => resolve(null);
    });
    const arrived = new Promise<number>((resolve) => {
      this.#once(what, (request) => {
        resolve(pidOf(request));
        return released;
      });
    });
    return { arrived, release };
  }

  /** Keeps every request that begins like this waiting, until so many processes have asked. */
  holdUntilAskedBy(processes: number, beginning: string): void {
    const asking = new Set<number>();
    this.#rules.push((request) => {
      if (!request.what.startsWith(beginning)) return null;
      asking.add(pidOf(request));
      return until(() => asking.size >= processes).then(() => null);
    });
  }

  /** Refuses the next request for this. */
  refuse(what: string, refusal: Refusal): void {
    this.#once(what, async () => refusal);
  }

  protected override async admit(request: StoreRequest): Promise<Refusal | null> {
    this.requests.push({ what: request.what, pid: pidOf(request) });
    for (const rule of [...this.#rules]) {
      const answer = rule(request);
      if (answer !== null) return answer;
    }
    return null;
  }

  #once(what: string, answer: (request: StoreRequest) => Promise<Refusal | null>): void {
    const rule: Rule = (request) => {
      if (request.what !== what) return null;
      this.#rules.splice(this.#rules.indexOf(rule), 1);
      return answer(request);
    };
    this.#rules.push(rule);
  }
}

const pidOf = ({ by }: StoreRequest) => Number(by.split("/")[1]);
