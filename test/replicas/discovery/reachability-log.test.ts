import { expect, test } from 'vitest';
import { toReplicaConfig } from '#testkit/pool.ts';
import { ReachabilityLog } from '../../../src/replicas/discovery/reachability-log.ts';

const ANSWER = { kind: 'answer', status: 200, text: '' } as const;

test('a replica that requests cannot reach and that answers probes is warned about once a minute', () => {
  const lines: string[] = [];
  const write = (level: string) => (_: object, message: string) => lines.push(`${level} ${message}`);
  const log = new ReachabilityLog({ info: write('info'), warn: write('warn') });
  const replicas = ['a', 'b'].map((name) => ({ name, config: toReplicaConfig(name) }));
  for (const replica of [...replicas, ...replicas]) {
    log.note(replica, { before: 'connection_refused', now: 'reachable', result: ANSWER });
    log.note(replica, { before: null, now: 'reachable', result: ANSWER });
    log.note(replica, { before: 'loading_model', now: 'reachable', result: ANSWER });
  }
  expect(lines).toEqual(
    ['a', 'b'].map(
      (name) => `warn replica ${name}: it fails now and then (connection refused), but answers probes`,
    ),
  );
});
