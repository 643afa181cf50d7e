/** Which rows are repetitions of each other: those whose names differ only in numbers. */

/** The name with a star in place of each number, and without the number that Pawl appends when a name is used again. */
export function namePattern(name: string): string {
  return name
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, "*")
    .replace(/([^/])#\d+(?=$|[/#])/g, "$1")
    .replace(/\d+/g, "*");
}
