/** A member of parsed JSON; undefined if it is no object, or has none of that name. */
export function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined;
}

/** The items of a list that is a member of parsed JSON; none if there is no such list. */
export function itemsOf(value: unknown, key: string): readonly unknown[] {
  const listed = memberOf(value, key);
  return Array.isArray(listed) ? listed : [];
}
