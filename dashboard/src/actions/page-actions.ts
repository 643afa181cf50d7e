/** The actions of the open screen, which the palette offers, too. */
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { IconName } from "../ui/icon.js";

interface PageAction {
  readonly label: string;
  readonly icon: IconName;
  readonly run: () => void;
}

export const actionsOfPage = signal<readonly PageAction[]>([]);

/** Offers actions in the palette while the component is shown. */
export function usePageActions(actions: readonly PageAction[], dependencies: readonly unknown[]): void {
  useEffect(() => {
    actionsOfPage.value = actions;
    return () => {
      actionsOfPage.value = [];
    };
  }, [...dependencies]);
}
