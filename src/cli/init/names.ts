/** Derives names for code from the names of tables. */

/** "order_items" becomes "OrderItem". */
export function typeNameOf(table: string): string {
  const words = table.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== "");
  const last = words.at(-1);
  const all = last === undefined ? ["row"] : [...words.slice(0, -1), singular(last)];
  const name = all.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  // The generated file imports `Workflow`, and a class name must not begin with a digit.
  return name === "Workflow" || /^\P{L}/u.test(name) ? `Row${name}` : name;
}

function singular(word: string): string {
  if (/^people$/i.test(word)) return word.charAt(0) === "P" ? "Person" : "person";
  if (/ies$/i.test(word)) return `${word.slice(0, -3)}y`;
  if (/(ss|x|ch|sh)es$/i.test(word)) return word.slice(0, -2);
  return /[^su]s$/i.test(word) ? word.slice(0, -1) : word;
}

/** "OrderItem" becomes "order_item". */
export const snakeCase = (name: string): string => name.replace(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/gu, "_").toLowerCase();
