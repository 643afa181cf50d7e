/** Run ids are uuids, and a uuid column refuses other text loudly. What cannot be an id belongs to no run. */
const canonicalUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

export const isRunId = (text: string): boolean => canonicalUuid.test(text);
