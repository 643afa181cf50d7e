/** Where Chromium is on this machine. */
export const chromium: {
  /** Undefined: it is not installed. */
  findBinaries(): { readonly server: string } | undefined;
};
