/** What a class of `parts_after` stands for: after 0, 1, 2 to 3, 4 to 7, … equal tokens. */
export function toClassTitle(place: number): string {
  if (place === 0) return 'at the first token';
  if (place === 1) return 'after 1 token';
  return `after ${2 ** (place - 1)} to ${2 ** place - 1} tokens`;
}
