import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextLogicalTimestamp } from '#replicas/drain-state';
import { parseHeartbeat, parseSnapshot, printHeartbeat, printSnapshot } from '../../src/fleet/wire-format.ts';

const stamp = fc
  .tuple(fc.integer({ min: 0, max: 4_000_000_000_000 }), fc.stringMatching(/^[0-9a-f]{12}$/))
  .map(([epochMs, random]) => nextLogicalTimestamp('', epochMs, random));
const count = fc.nat();
const name = fc.oneof(fc.string(), fc.constant('__proto__'));
const mapOf = <K extends string, V>(key: fc.Arbitrary<K>, value: fc.Arbitrary<V>) =>
  fc.array(fc.tuple(key, value), { maxLength: 5 }).map((entries) => new Map(entries));
const rampMs = fc.integer({ min: 1, max: 86_400_000 });
const drain = fc.record(
  {
    drained: fc.boolean(),
    since: fc.option(fc.string()),
    reason: fc.option(fc.string()),
    version: stamp,
    rampMs,
  },
  { requiredKeys: ['drained', 'since', 'reason', 'version'] },
);
const time = fc.date({ noInvalidDate: true }).map((date) => date.toISOString());
const snapshot = fc.record(
  {
    id: stamp,
    name,
    revision: count,
    members: mapOf(stamp, name),
    removed: fc.array(stamp, { maxLength: 5 }),
    drains: mapOf(name, drain),
    home: stamp,
    gone: mapOf(name, time),
    forgotten: mapOf(name, stamp),
    left: mapOf(stamp, fc.record({ version: stamp, name, restMs: count, counts: mapOf(name, count) })),
  },
  { requiredKeys: ['id', 'name', 'revision', 'members', 'removed', 'drains'] },
);
const heartbeat = fc.record(
  {
    id: stamp,
    number: count,
    revision: count,
    heard: mapOf(stamp, count),
    drained: mapOf(name, stamp),
    inflight: mapOf(name, count),
    used: mapOf(name, fc.record({ requests: fc.maxSafeInteger(), tokens: fc.maxSafeInteger() })),
    background: mapOf(name, fc.record({ running: count, unknown: count })),
    ramps: mapOf(name, fc.record({ elapsedMs: count, durationMs: rampMs })),
    version: fc.stringMatching(/^[\w.+-]{1,64}$/),
  },
  { requiredKeys: ['id', 'number', 'revision', 'heard', 'drained', 'inflight'] },
);

describe('the messages of a gateway', () => {
  test('are the same after printing and parsing', () => {
    fc.assert(
      fc.property(snapshot, heartbeat, (written, sent) => {
        expect(parseSnapshot(printSnapshot(written))).toEqual(written);
        expect(parseHeartbeat(printHeartbeat(sent))).toEqual(sent);
      }),
    );
  });

  test('may have members that a later version adds', () => {
    fc.assert(
      fc.property(snapshot, heartbeat, (written, sent) => {
        const extend = (text: string) => JSON.stringify({ ...JSON.parse(text), added: { later: true } });
        expect(parseSnapshot(extend(printSnapshot(written)))).toEqual(written);
        expect(parseHeartbeat(extend(printHeartbeat(sent)))).toEqual(sent);
      }),
    );
  });

  test('lose members and removed ids that are not stamps', () => {
    const [id, other] = ['0mwqesp5m-cdf0375d04eb', '0mwqesp5m-cdf0375d04ec'];
    const members = `{"foo":"foo","__proto__":"x","constructor":"y","${other}":"gw"}`;
    const text = `{"id":"${id}","name":"a","revision":1,"members":${members},"removed":["bar",1],"drains":{}}`;
    expect(parseSnapshot(text)).toMatchObject({ members: new Map([[other, 'gw']]), removed: [] });
  });

  test.each([
    '',
    'null',
    '[]',
    '{}',
    '{"id":"x"}',
    '{"id":"0mwqesp5m-cdf0375d04eb","name":"a","revision":1,"members":{},"removed":[],"drains":{"x":[1,1,null,null]}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","name":"a","revision":-1,"members":{},"removed":[],"drains":{}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","name":"a","revision":1,"members":{},"removed":[],"drains":{},"home":"x"}',
    '{"id":"0mwqesp5m-cdf0375d04eb","name":"a","revision":1,"members":{},"removed":[],"drains":{},"gone":{"x":"y"}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","name":"a","revision":1,"members":{},"removed":[],"drains":{},"forgotten":{"x":1}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","name":"a","revision":1,"members":{},"removed":[],"drains":{},"left":{"x":[1]}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","number":1,"revision":1,"heard":{},"drained":{"x":1},"inflight":{}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","number":1,"revision":1,"heard":{},"drained":{},"inflight":{"x":-1}}',
    '{"id":"0mwqesp5m-cdf0375d04eb","number":1,"revision":1,"heard":{},"drained":{},"inflight":{},"background":{"x":1}}',
  ])('do not include %s', (text) => {
    expect([parseSnapshot(text), parseHeartbeat(text)]).toEqual([null, null]);
  });
});
