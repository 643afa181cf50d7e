/** The databases that a campaign can run on. */
export const storeNames = ["sqlite", "postgres", "mysql"] as const;
export type StoreName = (typeof storeNames)[number];
