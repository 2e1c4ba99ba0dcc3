import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { openSpool } from '#otel/disk/spool.ts';
import { createMembershipFile } from '../../../../src/fleet/membership-file.ts';
import { createDrainFile } from '../../../../src/replicas/control/drains/drain-file.ts';
import { isLogicalTimestamp } from '../../../../src/replicas/control/drains/logical-timestamp.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';
import { createFuzzFolder } from '../fuzz-folder.ts';
import { spoolLines } from './spans.ts';

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
const FILES = ['drains.json', 'fleet.json', 'spool/00000000000001-000001-00000000.spool'] as const;
const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

const directory = createFuzzFolder();

/** The files in state_dir. */
export const STATE: FuzzTarget = {
  name: 'state',
  reads: 'the files of state_dir: drains.json, fleet.json, the spool',
  oracle:
    'reading never fails; a replica that the file, as JSON.parse reads it, has as drained, is drained; what was read is the same when it is written and read again',
  variants: FILES.length,
  ciInputs: 1_000,
  generate(random, variant) {
    if (variant === 2) return spoolLines(random);
    return Buffer.from(variant === 0 ? drains(random) : membership(random));
  },
  check({ bytes, variant }) {
    if (variant === 2) return checkSpool(bytes);
    writeFileSync(join(directory, FILES[variant] ?? ''), bytes);
    return variant === 0 ? checkDrains(bytes) : checkMembership();
  },
  async read({ bytes, variant }) {
    if (variant === 2) return readSpool(bytes);
    writeFileSync(join(directory, FILES[variant] ?? ''), bytes);
    const create = variant === 0 ? createDrainFile : createMembershipFile;
    return await create(directory, SILENT).read();
  },
};

async function checkDrains(bytes: Buffer): Promise<boolean> {
  const file = createDrainFile(directory, SILENT);
  const states = await file.read();
  const isDrained = (name: string) => states.get(name)?.drained === true;
  for (const name of drainedIn(bytes)) must(isDrained(name), `the drain of ${name} is lost`);
  for (const { version } of states.values())
    must(version === '' || isLogicalTimestamp(version), `${version} is no version`);
  await file.write(states);
  mustEqual('drains that are written and read again', await file.read(), states);
  return states.size > 0;
}

/** The replicas that are drained in a file that is JSON as a whole. */
function drainedIn(bytes: Buffer): string[] {
  try {
    const { version, replicas } = JSON.parse(bytes.toString()) as { version?: unknown; replicas?: object };
    if (version !== 1 || Array.isArray(replicas)) return [];
    return Object.entries(replicas ?? {}).flatMap(([name, state]) => (state?.drained === true ? [name] : []));
  } catch {
    return [];
  }
}

async function checkMembership(): Promise<boolean> {
  const file = createMembershipFile(directory, SILENT);
  const membership = await file.read();
  const { id, members, removed } = membership;
  for (const each of [...members.keys(), ...removed, ...(id === null ? [] : [id])])
    must(isLogicalTimestamp(each), `${each} is no id`);
  if (id === null) return false;
  await file.write(membership);
  mustEqual('a fleet that is written and read again', await file.read(), membership);
  return true;
}

async function checkSpool(bytes: Buffer): Promise<boolean> {
  const spans = await readSpool(bytes);
  mustEqual('the records of a spool', spans.map(toHex), intactSpansOf(bytes).map(toHex));
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

async function readSpool(bytes: Buffer): Promise<readonly Uint8Array[]> {
  const spoolDirectory = join(directory, 'spool');
  rmSync(spoolDirectory, { recursive: true, force: true });
  mkdirSync(spoolDirectory);
  writeFileSync(join(directory, FILES[2]), bytes);
  const spool = await openSpool(spoolDirectory, SILENT);
  const spans: Uint8Array[] = [];
  for (let batch = await spool.next(); batch !== undefined; batch = await spool.next()) {
    spans.push(...batch.encodedSpans);
    await batch.settle(batch.encodedSpans.length);
  }
  return spans;
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
