/** A value or key that breaks a rule: its path, and what was expected there or what is wrong. */
export type Violation =
  | { readonly path: readonly PropertyKey[]; readonly expected: string }
  | { readonly path: readonly PropertyKey[]; readonly message: string };

/** Whether data that is not checked yet has keys; a list has, too. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
