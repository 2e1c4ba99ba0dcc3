import { describe, expect, test } from 'vitest';
import { BoardExchange, RolloutBoard } from '#rollout-board';
import { otherDriver, replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { parseBoard, printBoard } from '../../src/rollout-board/board-text.ts';

/** Gateways on one channel, which delivers at once. */
function createFleet(count: number) {
  const listeners = new Set<(message: string) => void>();
  const boards = Array.from({ length: count }, () => new RolloutBoard());
  const exchanges = boards.map(
    (board) =>
      new BoardExchange({
        board,
        openChannel(onMessage) {
          listeners.add(onMessage);
          return {
            publish: (message) => {
              for (const listener of [...listeners]) if (listener !== onMessage) listener(message);
            },
            close: () => listeners.delete(onMessage),
          };
        },
      }),
  );
  const [first, second] = boards;
  if (first === undefined || second === undefined) throw new Error('two gateways');
  return {
    first,
    second,
    exchanges,
    stop: () => {
      for (const exchange of exchanges) exchange.stop();
    },
  };
}

test('two gateways of a fleet show the same rollout, and both can steer it', () => {
  const { first, second, exchanges, stop } = createFleet(2);
  for (const exchange of exchanges) exchange.start();
  first.report(rolloutFacts(), 'ops');
  expect(second.find('0000000a')).toMatchObject({
    tokenName: 'ops',
    facts: { replicas: [{ name: 'a' }, {}] },
  });
  second.ask('0000000a', 'pause', 'night-shift');
  const answer = first.report(
    rolloutFacts({ seq: 2, replicas: [replicaFacts('a', { seq: 2, stage: 'done' })] }),
    'ops',
  );
  expect(answer).toMatchObject({ rollout: { facts: { ask: { kind: 'pause', by: 'night-shift' } } } });
  expect(second.find('0000000a')?.facts.replicas[0]).toMatchObject({ name: 'a', stage: 'done' });
  // Another rollout of the same replicas is refused at the gateway that no driver calls.
  const other = rolloutFacts({ id: '0000000b', driver: otherDriver() });
  expect(second.report(other, null).kind).toBe('conflict');
  stop();
});

test('a gateway that joins learns of the rollouts that there are', () => {
  const { first, second, exchanges, stop } = createFleet(2);
  exchanges[0]?.start();
  first.report(rolloutFacts({ state: 'done' }), null);
  expect(second.rollouts).toEqual([]);
  exchanges[1]?.start();
  expect(second.find('0000000a')?.facts.state).toBe('done');
  stop();
});

describe('a message of another program', () => {
  test.each(['', 'null', '{}', '[]', '{"version":2,"rollouts":[]}', '{"version":1,"rollouts":{}}'])(
    '%j is none',
    (text) => expect(parseBoard(text, 0)).toBeNull(),
  );

  test('has no effect beyond the rollouts that are legible', () => {
    const text = printBoard([{ facts: rolloutFacts(), tokenName: null, heardMs: 0 }], 5);
    const message = JSON.parse(text);
    const [whole] = message.rollouts;
    message.rollouts.push({ ...whole, facts: { ...whole.facts, id: '../../x' } }, 7);
    const parsed = parseBoard(JSON.stringify(message), 5);
    expect(parsed).toMatchObject({ unreadableCount: 2, rollouts: [{ heardMs: 0 }] });
  });

  test('puts nothing on a terminal that moves its cursor', () => {
    const facts = rolloutFacts({
      sentence: '\u001b[2J\u202Egone',
      replicas: [replicaFacts('a', { text: 'x\ny' })],
    });
    const parsed = parseBoard(printBoard([{ facts, tokenName: null, heardMs: 0 }], 0), 0);
    expect(parsed?.rollouts[0]?.facts.sentence).toBe(' [2J gone');
    expect(parsed?.rollouts[0]?.facts.replicas[0]?.text).toBe('x y');
  });
});
