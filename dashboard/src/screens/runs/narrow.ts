/** Whether the window is too narrow for columns. */
import { signal } from "@preact/signals";

const query = window.matchMedia("(max-width: 640px)");
const isNarrow = signal(query.matches);
query.addEventListener("change", () => {
  isNarrow.value = query.matches;
});

export const useIsNarrow = (): boolean => isNarrow.value;
