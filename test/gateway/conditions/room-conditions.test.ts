import { expect, test } from 'vitest';
import { createRoomProducer, type RoomSources } from '../../../src/gateway/conditions/machine-conditions.ts';

const usage = (now: number, limit: number) => () => ({ now, limit });

const ROOM: RoomSources = {
  waiting: usage(80, 100),
  buffered: usage(80, 100),
  connections: usage(80, 100),
  descriptors: usage(80, 100),
};

const idsOf = (sources: Partial<RoomSources>) =>
  [...createRoomProducer({ ...ROOM, ...sources })()].map(({ id, figures }) => ({ id, ...figures }));

test('four fifths of each limit are room enough', () => {
  expect(idsOf({})).toEqual([]);
});

test('more than that is told with the figures', () => {
  expect(idsOf({ waiting: usage(81, 100) })).toEqual([{ id: 'waiting_long', waiting: 81, limit: 100 }]);
  expect(idsOf({ buffered: usage(81, 100) })).toEqual([{ id: 'buffers_near_limit', used: 81, limit: 100 }]);
  expect(idsOf({ descriptors: usage(81, 100) })).toEqual([
    { id: 'descriptors_near_limit', open: 81, limit: 100 },
  ]);
  expect(idsOf({ connections: usage(99, 100) })).toEqual([
    { id: 'connections_near_limit', open: 99, limit: 100 },
  ]);
});

test('all connections open is another condition than nearly all', () => {
  expect(idsOf({ connections: usage(100, 100) })).toEqual([{ id: 'connections_full', limit: 100 }]);
});

test('without a queue nothing waits too long, and a system that does not tell has no descriptors', () => {
  expect(idsOf({ waiting: usage(0, 0), descriptors: () => null })).toEqual([]);
});
