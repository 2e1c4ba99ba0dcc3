import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextDelayMs } from '../../../../src/replicas/discovery/kubernetes/back-off.ts';
import {
  parseSliceList,
  parseWatchEvent,
} from '../../../../src/replicas/discovery/kubernetes/endpoint-slice.ts';
import { LongLineError, readLines } from '../../../../src/replicas/discovery/kubernetes/json-lines.ts';

const SLICE = {
  metadata: { name: 'vllm-abc', resourceVersion: '7' },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8000, protocol: 'TCP' }],
  endpoints: [
    {
      addresses: ['10.0.0.1', '10.0.0.2'],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef: { kind: 'Pod', name: 'vllm-0', uid: 'u' },
      nodeName: 'gpu-1',
    },
  ],
};
const PARSED = {
  name: 'vllm-abc',
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8000 }],
  endpoints: [
    {
      address: '10.0.0.1',
      isReady: true,
      isServing: true,
      isTerminating: false,
      node: 'gpu-1',
      pod: { name: 'vllm-0', uid: 'u' },
    },
  ],
};

const event = (type: string, object: unknown) => parseWatchEvent(JSON.stringify({ type, object }));

test('events of a watch are read', () => {
  const present = { type: 'present', slice: PARSED, resourceVersion: '7' };
  expect(event('ADDED', SLICE)).toEqual(present);
  expect(event('MODIFIED', SLICE)).toEqual(present);
  expect(event('DELETED', SLICE)).toEqual({ type: 'deleted', name: 'vllm-abc', resourceVersion: '7' });
  const bookmark = { type: 'bookmark', resourceVersion: '9' };
  expect(event('BOOKMARK', { metadata: { resourceVersion: '9' } })).toEqual(bookmark);
  expect(event('ERROR', { kind: 'Status', code: 410 })).toEqual({ type: 'error', code: 410 });
});

test('host names are no addresses of pods', () => {
  const slice = { ...SLICE, addressType: 'FQDN', endpoints: [{ addresses: ['a.example.com'] }] };
  expect(event('ADDED', slice)).toMatchObject({ slice: { addressType: 'other', endpoints: [] } });
});

const endpointsWith = (endpoint: object) => ({ ...SLICE, endpoints: [endpoint] });

test.each([
  ['no name', { ...SLICE, metadata: { resourceVersion: '7' } }],
  [
    'a position that changes the URL',
    { ...SLICE, metadata: { name: 'a', resourceVersion: '7&watch=false' } },
  ],
  ['a port out of range', { ...SLICE, ports: [{ port: 70_000 }] }],
  ['an address of the wrong kind', endpointsWith({ addresses: ['fd00::1'] })],
  ['an address with a zone', { ...endpointsWith({ addresses: ['fe80::1%eth0'] }), addressType: 'IPv6' }],
  ['a host instead of an address', endpointsWith({ addresses: ['evil.example.com'] })],
  ['no address', endpointsWith({ addresses: [] })],
  ['a condition that is a text', endpointsWith({ addresses: ['10.0.0.1'], conditions: { ready: 'false' } })],
  ['endpoints that are no list', { ...SLICE, endpoints: {} }],
])('a slice with %s is refused', (_, slice) => {
  expect(event('ADDED', SLICE)).not.toBeNull();
  expect(event('ADDED', slice)).toBeNull();
});

test('whatever else arrives is refused, and throws nothing', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      expect(parseSliceList(text)).toBeNull();
      expect(parseWatchEvent(text)).toBeNull();
    }),
  );
});

test('lines are the same wherever the stream is split', async () => {
  const text = Buffer.from('{"a":"ä"}\n\n{"b":1}\r\n{"c":"€"}\n');
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat({ max: text.length })), async (cuts) => {
      const ends = [...cuts, text.length].toSorted((a, b) => a - b);
      const chunks = ends.map((end, index) => text.subarray(ends[index - 1] ?? 0, end));
      const lines = await Array.fromAsync(readLines(from(chunks), 64));
      expect(lines.map((line) => line.trim())).toEqual(['{"a":"ä"}', '{"b":1}', '{"c":"€"}']);
    }),
  );
});

test('a line that is too long is an error before it ends', async () => {
  const read = (size: number) => Array.fromAsync(readLines(from([Buffer.alloc(size, 'x')]), 64));
  expect(await read(64)).toEqual([]);
  await expect(read(65)).rejects.toThrow(LongLineError);
});

async function* from(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

test('the first repetition comes at once, later ones after up to 30 s', () => {
  expect([0, 1].map((failures) => nextDelayMs(failures, 1))).toEqual([0, 0]);
  expect([2, 3, 4, 20, 5_000].map((failures) => nextDelayMs(failures, 1))).toEqual([
    500, 1_000, 2_000, 30_000, 30_000,
  ]);
  expect(nextDelayMs(20, 0)).toBe(15_000);
});
