/** The value of a JSON text; undefined if it is none. V8's error quotes its input, so it goes no further. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
