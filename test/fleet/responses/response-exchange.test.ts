import fc from 'fast-check';
import { expect, test } from 'vitest';
import { allocateStoredResponses, StoredResponses } from '#replicas/stored-responses';
import type { Channel, ChannelListener } from '../../../src/fleet/redis/redis-channel.ts';
import {
  parseMessage,
  printMessage,
  ResponseExchange,
} from '../../../src/fleet/responses/response-exchange.ts';

const word = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const response = fc.record({
  digest: fc.tuple(word, word, word, word),
  seed: word,
  model: fc.tuple(word, word),
  calledAs: fc.tuple(word, word),
  owner: fc.tuple(word, word),
});

test('a message says what was put into it', () => {
  fc.assert(
    fc.property(fc.array(response, { minLength: 1, maxLength: 256 }), (responses) => {
      expect(parseMessage(printMessage(responses))).toEqual(responses);
    }),
  );
});

test.each([
  '',
  'x',
  '2',
  `2${'0'.repeat(87)}`,
  `2${'0'.repeat(89)}`,
  `2${'g'.repeat(88)}`,
  `2${'0'.repeat(88)}\n`,
  `2${'0'.repeat(88 * 257)}`,
  '0'.repeat(88),
  // As long as nine responses, of gateways that tell no owners.
  '0'.repeat(72 * 11),
  `1${'0'.repeat(88)}`,
])('a message that no gateway wrote says nothing: %#', (message) => {
  expect(parseMessage(message)).toEqual([]);
});

/** Two gateways and the channel between them, which passes messages on at once. */
function connect() {
  const listeners = new Set<ChannelListener>();
  const messages: string[] = [];
  const open = () => {
    const table = new StoredResponses(allocateStoredResponses());
    const warnings: string[] = [];
    const openChannel = (listener: ChannelListener): Channel => {
      listeners.add(listener);
      return {
        publish(message) {
          messages.push(message);
          for (const each of listeners) each.onMessage(message);
        },
        close: () => void listeners.delete(listener),
      };
    };
    const log = { warn: (_: object, message: string) => void warnings.push(message) };
    return { table, warnings, exchange: new ResponseExchange({ storedResponses: table, openChannel, log }) };
  };
  return { listeners, messages, one: open(), other: open() };
}

test('what one gateway knows the other learns, while both exchange', async () => {
  const { listeners, messages, one, other } = connect();
  one.exchange.configure(true);
  other.exchange.configure(true);
  one.table.note('resp_1', { seed: 7, model: 'm' });
  await expect.poll(() => other.table.find('resp_1')).toMatchObject({ seed: 7 });
  for (let i = 0; i < 300; i++) other.table.note(`resp_${i}`, { seed: i, model: 'm' });
  await expect.poll(() => one.table.find('resp_299')).toMatchObject({ seed: 299 });
  expect(messages.map(({ length }) => (length - 1) / 88)).toEqual([1, 256, 44]);
  other.exchange.configure(false);
  expect(listeners.size).toBe(1);
  one.table.note('resp_late', { seed: 1, model: 'm' });
  await expect.poll(() => messages.length).toBe(4);
  expect(other.table.find('resp_late')).toBeNull();
  other.exchange.configure(true);
  other.exchange.configure(true);
  expect(listeners.size).toBe(2);
});

test('a server that does not permit the channel is logged', () => {
  const { listeners, one } = connect();
  one.exchange.configure(true);
  for (const { onRefused } of listeners) onRefused('NOPERM');
  expect(one.warnings).toEqual([expect.stringContaining('does not permit')]);
});
