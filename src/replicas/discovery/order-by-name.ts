/** One for all comparisons: making it takes a hundred times as long as one of them. */
const COLLATOR = new Intl.Collator('en', { numeric: true });

/** Orders what is sorted by its name: vllm-9 before vllm-10. */
export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return COLLATOR.compare(a.name, b.name);
}
