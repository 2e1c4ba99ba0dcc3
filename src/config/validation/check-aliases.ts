import { isObject, type Violation } from './violation.ts';

/** Checks that no alias stands for another one. Reads the data as given. */
export function checkAliases({ aliases }: Readonly<Record<string, unknown>>): Violation[] {
  if (!isObject(aliases)) return [];
  const names = new Set(Object.keys(aliases));
  return Object.entries(aliases).flatMap(([name, model]) =>
    typeof model === 'string' && names.has(model)
      ? [{ path: ['aliases', name], expected: 'the name of a model: this is an alias itself' }]
      : [],
  );
}
