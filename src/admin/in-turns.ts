import { setImmediate as nextTurn } from 'node:timers/promises';

/** So many items are done in one turn of the event loop: a few milliseconds. */
const ITEMS_PER_TURN = 100;

/** Maps items. Thousands take several turns of the event loop: requests go on meanwhile. */
export async function mapInTurns<T, R>(items: readonly T[], map: (item: T) => R): Promise<R[]> {
  const mapped: R[] = [];
  for (const item of items) {
    if (mapped.length > 0 && mapped.length % ITEMS_PER_TURN === 0) await nextTurn();
    mapped.push(map(item));
  }
  return mapped;
}

/** A value as a line of JSON. One with a long list comes piece by piece, each in a turn of its own. */
export function toJsonLine(value: unknown): string | AsyncIterable<string> {
  const isLong = Object.values(value ?? {}).some((member) => isLongList(member));
  return isLong ? toPieces(value as object) : `${JSON.stringify(value)}\n`;
}

async function* toPieces(value: object): AsyncIterable<string> {
  let before = '{';
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    before = ',';
    if (!isLongList(member)) {
      yield JSON.stringify(member);
      continue;
    }
    for (let start = 0; start < member.length; start += ITEMS_PER_TURN) {
      // Without its brackets.
      yield `${start === 0 ? '[' : ','}${JSON.stringify(member.slice(start, start + ITEMS_PER_TURN)).slice(1, -1)}`;
      await nextTurn();
    }
    yield ']';
  }
  yield '}\n';
}

function isLongList(member: unknown): member is readonly unknown[] {
  return Array.isArray(member) && member.length > ITEMS_PER_TURN;
}
