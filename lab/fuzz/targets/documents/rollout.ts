import { isDeepStrictEqual } from 'node:util';
import { StartError } from '#base';
import {
  parseRolloutState,
  printRolloutState,
  type RolloutState,
} from '../../../../src/rollout/progress-file/state-file.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const WORDS = [
  'version',
  'traceId',
  'replicas',
  'settings',
  'name',
  'stage',
  'command',
  'pid',
  'waiting',
  'vllm-0',
];
const STAGES = ['waiting', 'draining', 'restarted', 'undrained', 'done', 'held', 'gone'];

const PATH = '/var/lib/spangate/rollout.json';

/** The file with which a rollout goes on. */
export const ROLLOUT: FuzzTarget = {
  name: 'rollout',
  reads: 'the state file of `gateway rollout --resume`',
  oracle:
    'nothing but an error that names the file; what is accepted is what JSON.parse reads, with a process group that may be killed, and is the same when it is written and read again',
  variants: 1,
  ciInputs: 20_000,
  generate: (random) => Buffer.from(state(random)),
  check({ bytes }) {
    const text = bytes.toString();
    const found = read(text);
    if (found === null) return false;
    must(isDeepStrictEqual(found, JSON.parse(text)), 'the state is not that of the file');
    for (const { command } of found.replicas) {
      // 0 and 1 would be this process group, and all processes.
      must(command === null || (Number.isSafeInteger(command.pid) && command.pid > 1), 'a group is no group');
    }
    const printed = printRolloutState(found);
    const again = printRolloutState(parseRolloutState(printed, PATH));
    must(again === printed, 'the state changes when it is written and read again');
    return true;
  },
  read: ({ bytes }) => read(bytes.toString()),
};

/** Null: it is refused. */
function read(text: string): RolloutState | null {
  try {
    return parseRolloutState(text, PATH);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    must(error.message.includes(PATH), 'an error that does not name the file');
    return null;
  }
}

function state(random: Random): string {
  const hex = (digits: number) => value(random, `"${'a1'.repeat(digits / 2)}"`);
  const replicas = Array.from({ length: 1 + random.below(3) }, () => replica(random));
  return `{"version":${value(random, '2')},"traceId":${hex(32)},"rootSpanId":${hex(16)},"givenUp":${value(random, '["0123abcd"]')},"settings":${settings(random)},"gateways":${value(random, `[${gateway(random)}]`)},"replicas":${value(random, `[${replicas.join(',')}]`)},"accepted":${value(random, '["vllm-0"]')},"startedAt":${value(random, '"2026-11-21T08:00:00.000Z"')},"run":${value(random, '1')},"driverId":${value(random, 'null')}}`;
}

function gateway(random: Random): string {
  const fleet = random.chance(50) ? '[]' : '["0mf3k2x1a-0123456789ab"]';
  return `{"address":"http://127.0.0.1:9090","instanceId":${value(random, '"b3c1"')},"fleet":${value(random, fleet)}}`;
}

function replica(random: Random): string {
  const pid = random.chance(95)
    ? '4711'
    : random.pick(['0', '1', '-1', '2', '1e3', '4.5', '9007199254740993']);
  const command = random.chance(70) ? 'null' : `{"host":${value(random, '"node-1"')},"pid":${pid}}`;
  return `{"name":${value(random, '"vllm-0"')},"stage":"${random.pick(STAGES)}","sentence":${value(random, 'null')},"command":${value(random, command)}}`;
}

function settings(random: Random): string {
  const flags = ['isWatched', 'isProbed', 'isForced'].map((name) => `"${name}":${value(random, 'true')}`);
  const times = ['rampMs', 'drainMs', 'restartMs', 'compareMs'].map(
    (name) => `"${name}":${value(random, '60000')}`,
  );
  const verdict = value(random, random.pick(['"strict"', '"off"', '"hold"', '"warn"']));
  return `{"admins":${value(random, 'null')},"configPath":${value(random, '"/etc/spangate/gateway.yaml"')},"exec":${value(random, '"systemctl restart vllm"')},"maxUnavailable":${value(random, '1')},"verdict":${verdict},"reason":null,"shadow":${value(random, 'null')},"onBad":${value(random, '"rollback.sh"')},"onBadThen":${value(random, random.pick(['"stop"', '"continue"']))},${[...flags, ...times].join(',')}}`;
}

/** This value in most cases, else another. */
function value(random: Random, usual: string): string {
  return random.chance(99) ? usual : jsonText(random, WORDS, 1);
}
