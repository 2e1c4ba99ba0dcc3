import { isObject } from '#base/parsed';
/**
 * The canonical form of JSON without fractions, as bytes: members by name, no white space, and every character that is not
 * printable ASCII as `\uXXXX`. It is what Python prints with `json.dumps(value, sort_keys=True, separators=(",", ":"))`.
 */
export function toCanonicalJson(value: unknown): Buffer {
  const text = JSON.stringify(value, (_, member: unknown) => (isObject(member) ? sorted(member) : member));
  return Buffer.from(text.replace(/[\u007f-\uffff]/g, toEscape), 'latin1');
}

/** The names are ASCII. JSON.stringify puts names that are numbers first: a statement has none. */
function sorted(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function toEscape(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
