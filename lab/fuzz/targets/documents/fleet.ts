import { isLogicalTimestamp, nextLogicalTimestamp } from '#replicas/drain-state';
import { parseMessage, printMessage } from '../../../../src/fleet/responses/response-exchange.ts';
import {
  parseHeartbeat,
  parseSnapshot,
  printHeartbeat,
  printSnapshot,
} from '../../../../src/fleet/wire-format.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const STAMPS = [
  '0mcabc123-0123456789ab',
  'zzzyzzzzz-ffffffffffff',
  '000000000-000000000000',
  'zzzzzzzzz-ffffffffffff',
];
const WORDS = [
  ...[
    'id',
    'name',
    'revision',
    'members',
    'removed',
    'drains',
    'number',
    'heard',
    'drained',
    'inflight',
    'used',
  ],
  ...['running', 'ramps', 'replica-1', '2026-11-22T00:00:00.000Z', ...STAMPS],
];
/** Of a stored response, as gateways tell it. */
const RESPONSE_WORDS = 11;

/** What gateways write for each other in Redis. */
export const FLEET: FuzzTarget = {
  name: 'fleet',
  reads: 'the values of a fleet in Redis: snapshots, heartbeats (with ramps and use), stored responses',
  oracle:
    'what is accepted has the shape that the format says, and is the same when it is printed and read again',
  variants: 3,
  ciInputs: 20_000,
  generate(random, variant) {
    if (variant === 2) return Buffer.from(responses(random));
    return Buffer.from(variant === 0 ? snapshot(random) : heartbeat(random));
  },
  check({ bytes, variant }) {
    const text = bytes.toString();
    if (variant === 2) return checkResponses(text);
    return variant === 0 ? checkSnapshot(text) : checkHeartbeat(text);
  },
  read({ bytes, variant }) {
    const text = bytes.toString();
    if (variant === 2) return parseMessage(text);
    return variant === 0 ? parseSnapshot(text) : parseHeartbeat(text);
  },
};

function checkSnapshot(text: string): boolean {
  const snapshot = parseSnapshot(text);
  if (snapshot === null) return false;
  mustBeStamps([snapshot.id, ...snapshot.removed, ...snapshot.members.keys()]);
  mustBeStamps([...snapshot.drains.values()].map(({ version }) => version));
  mustBeCounts([snapshot.revision]);
  const printed = printSnapshot(snapshot);
  const again = parseSnapshot(printed);
  must(again !== null, 'a snapshot that is printed cannot be read');
  mustEqual('a snapshot that is read again', printSnapshot(again), printed);
  return true;
}

function checkHeartbeat(text: string): boolean {
  const heartbeat = parseHeartbeat(text);
  if (heartbeat === null) return false;
  const { id, number, revision, heard, drained, inflight, running, ramps } = heartbeat;
  mustBeStamps([id, ...drained.values()]);
  mustBeCounts([number, revision, ...heard.values(), ...inflight.values()]);
  mustBeCounts([...(running?.values() ?? [])].flatMap(({ held, wanted }) => [held, wanted]));
  mustBeCounts([...(ramps?.values() ?? [])].flatMap(({ elapsedMs, durationMs }) => [elapsedMs, durationMs]));
  const printed = printHeartbeat(heartbeat);
  const again = parseHeartbeat(printed);
  must(again !== null, 'a heartbeat that is printed cannot be read');
  mustEqual('a heartbeat that is read again', printHeartbeat(again), printed);
  return true;
}

function checkResponses(text: string): boolean {
  const responses = parseMessage(text);
  if (responses.length === 0) return false;
  mustEqual('responses that are printed again', printMessage(responses), text);
  return true;
}

/** A gateway must be able to make a greater one of each. */
function mustBeStamps(stamps: readonly string[]): void {
  for (const stamp of stamps) {
    const next = nextLogicalTimestamp(stamp, 0, '0'.repeat(12));
    must(
      isLogicalTimestamp(stamp) && next > stamp && next.length === stamp.length,
      `no stamp is after ${stamp}`,
    );
  }
}

function mustBeCounts(counts: readonly number[]): void {
  for (const count of counts) must(Number.isSafeInteger(count) && count >= 0, `a count is ${count}`);
}

/** Mostly whole responses of the current format. */
function responses(random: Random): string {
  const wordCount = RESPONSE_WORDS * random.below(4) + (random.chance(10) ? random.below(RESPONSE_WORDS) : 0);
  const format = random.chance(90) ? '2' : random.pick(['', '1', '22']);
  return format + Array.from({ length: wordCount }, () => hex(random)).join('');
}

function snapshot(random: Random): string {
  const drain = () => {
    const ramp = random.chance(30) ? `,${value(random, '60000')}` : '';
    return `[${stamp(random)},${value(random, random.pick(['0', '1']))},${value(random, 'null')},${value(random, '"update"')}${ramp}]`;
  };
  return `{"id":${stamp(random)},"name":${value(random, '"gw-1"')},"revision":${value(random, '7')},"members":${map(random, () => value(random, '"gw-2"'), STAMPS)},"removed":[${stamp(random)}],"drains":${map(random, drain)}}`;
}

function heartbeat(random: Random): string {
  const count = () => value(random, String(random.below(100)));
  const pair = () => `[${count()},${count()}]`;
  const optional = ['used', 'running', 'ramps'].map((name) =>
    random.chance(40) ? `,"${name}":${map(random, pair)}` : '',
  );
  if (random.chance(40)) optional.push(`,"version":${value(random, '"0.1.0"')}`);
  return `{"id":${stamp(random)},"number":${count()},"revision":${count()},"heard":${map(random, count, STAMPS)},"drained":${map(random, () => stamp(random))},"inflight":${map(random, count)}${optional.join('')}}`;
}

function map(
  random: Random,
  toValue: () => string,
  keys: readonly string[] = ['replica-1', 'b', '__proto__'],
): string {
  const members = Array.from(
    { length: random.below(3) },
    () => `${JSON.stringify(random.pick(keys))}:${toValue()}`,
  );
  return `{${members.join(',')}}`;
}

/** This value in most cases, else another. */
function value(random: Random, usual: string): string {
  return random.chance(95) ? usual : jsonText(random, WORDS, 1);
}

function stamp(random: Random): string {
  return value(random, JSON.stringify(random.chance(90) ? STAMPS[0] : random.pick(STAMPS)));
}

function hex(random: Random): string {
  return random
    .below(2 ** 32)
    .toString(16)
    .padStart(8, '0');
}
