/** The order of text in the SQL stores. */

/**
 * Compares by bytes of UTF-8, as the databases do. The operator `<` would compare UTF-16 units and put an emoji before
 * characters such as U+FF5E, so transactions that sort here and in the database could lock rows in opposite orders.
 */
export const compareText = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
