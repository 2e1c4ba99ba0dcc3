import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type EndpointSlice,
  parseSliceList,
} from '../../../../src/replicas/discovery/kubernetes/endpoint-slice.ts';
import {
  type PortChoice,
  toReadyEndpoints,
} from '../../../../src/replicas/discovery/kubernetes/ready-endpoints.ts';

const ANY: PortChoice = { port: null, portName: null, addressType: 'auto' };
const HTTP = [{ name: 'http', port: 8000 }];

const pod = (name: string, address: string, conditions: object = {}) => ({
  addresses: [address],
  conditions,
  targetRef: { kind: 'Pod', name, uid: `uid-of-${name}` },
});

/** Slices as the API server sends them. */
function slices(...given: readonly object[]): readonly EndpointSlice[] {
  const items = given.map((slice, index) => ({
    metadata: { name: `s${index}` },
    addressType: 'IPv4',
    ports: HTTP,
    endpoints: [],
    ...slice,
  }));
  const list = { kind: 'EndpointSliceList', metadata: { resourceVersion: '1' }, items };
  const parsed = parseSliceList(JSON.stringify(list));
  if (parsed === null) throw new Error('a list');
  return parsed.slices;
}

const found = (list: readonly EndpointSlice[], choice: Partial<PortChoice> = {}) =>
  toReadyEndpoints(list, { ...ANY, ...choice }).endpoints.map(
    ({ host, port, server }) => `${server?.pod?.name} ${host} ${port}`,
  );

test.each([
  [{}, true], // conditions that are not set
  [{ ready: null, terminating: null }, true],
  [{ ready: true, terminating: false }, true],
  [{ ready: false }, false],
  [{ ready: false, serving: true, terminating: true }, false],
  [{ ready: true, terminating: true }, false], // a Service that publishes addresses that are not ready
])('a pod with %j gets requests: %s', (conditions, isReady) => {
  const list = slices({ endpoints: [pod('a', '10.0.0.1', conditions)] });
  expect(found(list)).toEqual(isReady ? ['a 10.0.0.1 8000'] : []);
});

test('a pod in several slices gets requests only if all of them say so, in whatever order they come', () => {
  const stale = { endpoints: [pod('a', '10.0.0.1'), pod('b', '10.0.0.2')] };
  const fresh = { endpoints: [pod('a', '10.0.0.1', { ready: false, terminating: true })] };
  fc.assert(
    fc.property(fc.shuffledSubarray([stale, fresh], { minLength: 2 }), (order) => {
      expect(found(slices(...order))).toEqual(['b 10.0.0.2 8000']);
    }),
  );
});

test('a pod with two ports, or two names, is the same server in whatever order its slices come', () => {
  const given = [
    { ports: [{ port: 8000 }], endpoints: [pod('a', '10.0.0.1')] },
    { ports: [{ port: 9000 }], endpoints: [pod('a', '10.0.0.1')] },
    { ports: [{ port: 9000 }], endpoints: [{ ...pod('b', '10.0.0.2'), nodeName: 'gpu-1' }] },
    { ports: [{ port: 9000 }], endpoints: [{ ...pod('b', '10.0.0.2'), nodeName: 'gpu-2' }] },
    { ports: [{ port: 9000 }], endpoints: [{ ...pod('c', '10.0.0.3'), targetRef: null }] },
    { ports: [{ port: 9000 }], endpoints: [pod('c', '10.0.0.3')] },
  ];
  const first = toReadyEndpoints(slices(...given), ANY);
  expect(first.endpoints.map(({ host }) => host).sort()).toEqual(['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  fc.assert(
    fc.property(fc.shuffledSubarray(given, { minLength: given.length }), (order) => {
      expect(toReadyEndpoints(slices(...order), ANY)).toEqual(first);
    }),
  );
});

test('a pod with two kinds of address is one replica, at the wanted one', () => {
  const four = { endpoints: [pod('a', '10.0.0.1')] };
  const six = { addressType: 'IPv6', endpoints: [pod('a', 'fd00::a')] };
  expect(found(slices(six, four))).toEqual(['a 10.0.0.1 8000']);
  expect(found(slices(six, four), { addressType: 'IPv6' })).toEqual(['a fd00::a 8000']);
  expect(found(slices(six))).toEqual(['a fd00::a 8000']);
  expect(found(slices(six), { addressType: 'IPv4' })).toEqual([]);
  const gone = { addressType: 'IPv6', endpoints: [pod('a', 'fd00::a', { terminating: true })] };
  expect(found(slices(gone, four))).toEqual([]);
});

test('an address that an old pod leaves to a new one is the new one', () => {
  const list = slices({
    endpoints: [pod('old', '10.0.0.1', { terminating: true }), pod('new', '10.0.0.1')],
  });
  expect(found(list)).toEqual(['new 10.0.0.1 8000']);
});

test('the port is the one that is configured, the one of that name, or the only one', () => {
  const endpoints = [pod('a', '10.0.0.1')];
  const two = slices({ ports: [...HTTP, { name: 'metrics', port: 9000 }], endpoints });
  expect(found(two, { portName: 'metrics' })).toEqual(['a 10.0.0.1 9000']);
  expect(found(two, { port: 7000 })).toEqual(['a 10.0.0.1 7000']);
  expect(toReadyEndpoints(two, ANY)).toEqual({ endpoints: [], unready: [], isPortMissing: true });
  const udp = slices({ ports: [...HTTP, { name: 'dns', port: 53, protocol: 'UDP' }], endpoints });
  expect(found(udp)).toEqual(['a 10.0.0.1 8000']);
  const none = slices({ ports: null, endpoints });
  expect(found(none, { port: 7000 })).toEqual(['a 10.0.0.1 7000']);
  expect(toReadyEndpoints(none, ANY)).toEqual({ endpoints: [], unready: [], isPortMissing: true });
});

test('a server that is no pod is found by its address', () => {
  const list = slices({ endpoints: [{ addresses: ['10.0.0.9'], nodeName: 'gpu-1' }] });
  expect(toReadyEndpoints(list, ANY).endpoints).toEqual([
    { host: '10.0.0.9', port: 8000, server: { pod: null, node: 'gpu-1' } },
  ]);
});

const unready = (list: readonly EndpointSlice[]) =>
  toReadyEndpoints(list, ANY).unready.map(({ server }) => server?.pod?.name);

test.each([
  [{}, false],
  [{ ready: false }, true],
  [{ ready: false, serving: false, terminating: false }, true],
  [{ ready: true, serving: false }, true], // a Service that publishes addresses that are not ready
  [{ ready: false, serving: true }, false],
  [{ ready: false, serving: false, terminating: true }, false],
])('a pod with %j is not ready and may become so: %s', (conditions, isUnready) => {
  expect(unready(slices({ endpoints: [pod('a', '10.0.0.1', conditions)] }))).toEqual(isUnready ? ['a'] : []);
});

test('of several slices one is enough to call a pod unready, or to say that it terminates', () => {
  const lists = [
    { endpoints: [pod('a', '10.0.0.1'), pod('b', '10.0.0.2', { ready: false })] },
    { endpoints: [pod('a', '10.0.0.1', { ready: false }), pod('b', '10.0.0.2', { terminating: true })] },
  ];
  expect(unready(slices(...lists))).toEqual(['a']);
  expect(unready(slices(...lists.toReversed()))).toEqual(['a']);
});

test('a server that is no pod is never unready, and a missing port is told before the pods are ready', () => {
  const { targetRef: _, ...machine } = pod('a', '10.0.0.1', { ready: false });
  expect(unready(slices({ endpoints: [machine] }))).toEqual([]);
  const none = slices({ ports: [], endpoints: [pod('a', '10.0.0.1', { ready: false })] });
  expect(toReadyEndpoints(none, ANY)).toEqual({ endpoints: [], unready: [], isPortMissing: true });
});
