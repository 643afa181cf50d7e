/**
 * Run ids are uuids. A statement with other text for a uuid column fails, so such text is treated as the id of no run.
 */
const canonicalUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isRunId = (text: string): boolean => canonicalUuid.test(text);
