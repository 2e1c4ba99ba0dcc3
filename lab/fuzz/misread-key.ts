/**
 * Whether JSON.parse can take a key of the text for another one. That of V8 14.6 (Node 26.10) sometimes does so with a key
 * that is one character written as an escape: `{"\u0020":1}` may get the key `\`. It depends on what was parsed before.
 */
export function mayBeMisread(text: string): boolean {
  return /"\\(?:u[0-9a-fA-F]{4}|.)"\s*:/.test(text);
}
