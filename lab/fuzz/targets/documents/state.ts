import { crc32 } from 'node:zlib';
import { isLogicalTimestamp } from '#replicas/drain-state';
import { parseSpoolLines, toSpoolLines } from '../../../../otel/disk/spool.ts';
import { parseMembership, printMembership } from '../../../../src/fleet/membership-file.ts';
import { parseDrainStates, printDrainStates } from '../../../../src/replicas/drains/drain-file.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const STAMP = '0mcabc123-0123456789ab';
const WORDS = [
  'version',
  'replicas',
  'drained',
  'since',
  'reason',
  'id',
  'isKnown',
  'members',
  'removed',
  STAMP,
  'a',
];
/** The files in state_dir. */
export const STATE: FuzzTarget = {
  name: 'state',
  reads: 'the files of state_dir: drains.json, fleet.json, the spool',
  oracle:
    'reading never fails; a replica that the file, as JSON.parse reads it, has as drained, is drained; what was read is the same when it is written and read again',
  variants: 3,
  ciInputs: 20_000,
  generate(random, variant) {
    if (variant === 2) return spoolLines(random);
    return Buffer.from(variant === 0 ? drains(random) : membership(random));
  },
  check({ bytes, variant }) {
    if (variant === 2) return checkSpool(bytes);
    return variant === 0 ? checkDrains(bytes.toString()) : checkMembership(bytes.toString());
  },
  read({ bytes, variant }) {
    if (variant === 2) return parseSpoolLines(bytes);
    return variant === 0 ? parseDrainStates(bytes.toString()) : parseMembership(bytes.toString());
  },
};

function checkDrains(text: string): boolean {
  const { value: states = new Map<string, never>() } = parseDrainStates(text) ?? {};
  const isDrained = (name: string) => states.get(name)?.drained === true;
  for (const name of drainedIn(text)) must(isDrained(name), `the drain of ${name} is lost`);
  for (const { version } of states.values())
    must(version === '' || isLogicalTimestamp(version), `${version} is no version`);
  const again = parseDrainStates(printDrainStates(states));
  mustEqual('drains that are written and read again', again, { value: states, unreadable: [] });
  return states.size > 0;
}

/** The replicas that are drained in a file that is JSON as a whole. */
function drainedIn(text: string): string[] {
  try {
    const { version, replicas } = JSON.parse(text) as { version?: unknown; replicas?: object };
    if (version !== 1 || Array.isArray(replicas)) return [];
    return Object.entries(replicas ?? {}).flatMap(([name, state]) => (state?.drained === true ? [name] : []));
  } catch {
    return [];
  }
}

function checkMembership(text: string): boolean {
  const membership = parseMembership(text)?.value;
  if (membership === undefined) return false;
  const { id, members, removed } = membership;
  for (const each of [...members.keys(), ...removed, id]) must(isLogicalTimestamp(each), `${each} is no id`);
  const again = parseMembership(printMembership(membership));
  mustEqual('a fleet that is written and read again', again, { value: membership, unreadable: [] });
  return true;
}

function checkSpool(bytes: Buffer): boolean {
  const { encodedSpans: spans, damagedCount } = parseSpoolLines(bytes);
  mustEqual('the records of a spool', spans.map(toHex), intactSpansOf(bytes).map(toHex));
  const again = parseSpoolLines(toSpoolLines(spans));
  mustEqual('what is written and read again', again.encodedSpans.map(toHex), spans.map(toHex));
  must(again.damagedCount === 0 && damagedCount >= 0, 'a line that was written is damaged');
  return spans.length > 0;
}

/** What stands in the lines whose checksum is right. */
function intactSpansOf(bytes: Buffer): readonly Buffer[] {
  return bytes
    .toString('latin1')
    .split('\n')
    .map((line) => ({ checksum: line.slice(0, 8), span: Buffer.from(line.slice(9), 'base64') }))
    .filter(({ span, checksum }) => span.length > 0 && crc32(span) === Number(`0x${checksum}`))
    .filter(({ checksum }) => /^[0-9a-f]{8}$/.test(checksum))
    .map(({ span }) => span);
}

function toHex(span: Uint8Array): string {
  return Buffer.from(span).toString('hex');
}

function drains(random: Random): string {
  const state = () => {
    if (random.chance(15)) return jsonText(random, WORDS, 1);
    const ramp = random.chance(20) ? `,"rampMs":${random.pick(['60000', '-1', '"x"'])}` : '';
    return `{"drained":${random.pick(['true', 'true', 'false', '1'])},"since":${random.pick(['null', '"2026-11-22T00:00:00.000Z"', '"x"', '7'])},"reason":${random.pick(['null', '"update"', '{}'])},"version":${random.pick([`"${STAMP}"`, '""', '"zzzzzzzzz-ffffffffffff"'])}${ramp}}`;
  };
  const members = Array.from(
    { length: random.below(4) },
    () => `${JSON.stringify(random.pick(['a', 'b', '__proto__', 'é']))}:${state()}`,
  );
  return `{"version":1,"replicas":{${members.join(',')}}}\n`;
}

function membership(random: Random): string {
  const other = () =>
    random.chance(70) ? `"${STAMP}"` : jsonText(random, [...WORDS, 'toString', 'valueOf'], 2);
  return `{"version":1,"id":${other()},"isKnown":${random.pick(['true', 'false', '1'])},"members":{"${STAMP}":${other()},${JSON.stringify(random.pick(WORDS))}:"gw"},"removed":[${other()},${other()}]}\n`;
}

/** A file of a spool, with some lines that are none. */
function spoolLines(random: Random): Buffer {
  const lines = Array.from({ length: random.below(5) }, () => {
    const span = Buffer.from(random.text('abc\0é\n', 60));
    const checksum = random.chance(90) ? crc32(span) : random.below(1000);
    return `${checksum.toString(16).padStart(8, '0')} ${span.toString('base64')}\n`;
  });
  return Buffer.from(lines.join(''));
}
