/** The first `most` names, and how many there are beyond them. */
export function toList(names: readonly string[], most: number): string {
  const rest = names.length - most;
  const listed = names.slice(0, most).join(', ');
  return rest > 0 ? `${listed} and ${rest} more` : listed;
}

/** Since when something is so, if that is known: RFC 3339. */
export function toSince(since: string | null): { readonly sinceEpochMs?: number } {
  return since === null ? {} : { sinceEpochMs: Date.parse(since) };
}
