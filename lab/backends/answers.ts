/** A member of an answer of a backend, at any depth; undefined if the answer has another form. */
export function at(answer: unknown, ...path: readonly (string | number)[]): unknown {
  let value = answer;
  for (const name of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** The items of a list in an answer; none if there is no list. */
export function itemsAt(answer: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const list = at(answer, ...path);
  return Array.isArray(list) ? list : [];
}

/** The text of a member of an answer; empty if there is none. */
export function textAt(answer: unknown, ...path: readonly (string | number)[]): string {
  const text = at(answer, ...path);
  return typeof text === 'string' ? text : '';
}

/** Sorted texts without repetition. */
export const toSet = (texts: readonly string[]): readonly string[] => [...new Set(texts)].toSorted();

/** Asks a backend and resolves with its JSON. Rejects with its words if the status is not 2xx. */
export async function askJson(url: string, body?: object): Promise<unknown> {
  const response = await fetch(
    url,
    body && { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) },
  );
  const text = await response.text();
  if (!response.ok) throw new Error(`${url} was answered with ${response.status}: ${text.slice(0, 500)}`);
  return JSON.parse(text);
}
