/** The web worker that lays graphs out. */
import { type LayoutRequest, layOut } from "./layout.js";

interface WorkerScope {
  addEventListener(
    type: "message",
    listener: (event: MessageEvent<{ readonly id: number; readonly request: LayoutRequest }>) => void,
  ): void;
  postMessage(message: unknown): void;
}

// The types of the page and of a worker cannot both be in one program; the page's are.
const scope = globalThis as unknown as WorkerScope;

scope.addEventListener("message", ({ data: { id, request } }) => {
  try {
    scope.postMessage({ id, layout: layOut(request) });
  } catch (error) {
    scope.postMessage({ id, error: error instanceof Error ? error.message : String(error) });
  }
});
