/** A list of which only some rows are in the page cannot be made of table elements, so its parts have their roles. */
/** @param rowCount with the row of titles; -1: not known */
export const asTable = (label: string, rowCount: number) =>
  ({ role: "table", "aria-label": label, "aria-rowcount": rowCount }) as const;
/** @param index from 1, which is the row of titles */
export const asRow = (index: number) => ({ role: "row", "aria-rowindex": index }) as const;
export const asCell = { role: "cell" } as const;
export const asColumnHeader = { role: "columnheader" } as const;
export const asListItem = { role: "listitem" } as const;
/** What scrolls has to be reachable by the keyboard. */
export const asScroller = (label: string) => ({ role: "region", tabIndex: 0, "aria-label": label }) as const;
