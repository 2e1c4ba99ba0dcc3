import { describe, expect, test } from 'vitest';
import { createInTurn } from '#base';
import { parseConfig } from '#config';
import type { AdminAction } from '#otel/span';
import { TooManyReplicasError } from '#replicas/registry';
import { NO_SECRETS } from '../../src/config/secrets/environment-secrets.ts';
import {
  type ConfigSource,
  createReload,
  type ReloadCollaborators,
} from '../../src/gateway/reload-config.ts';

const NOTHING = { replicas: { added: [], changed: [], removed: [] }, changedFiles: new Set<string>() };

const parse = (level: string) =>
  parseConfig(`replicas: [{ name: a, url: "http://a" }]\nlog: { level: ${level} }\n`, {
    path: '/etc/spangate/gateway.yaml',
    env: {},
  });

/** A reload whose file has these log levels, one per read, with its actions and log lines. */
function create(levels: readonly string[], apply: ReloadCollaborators['apply']) {
  const actions: AdminAction[] = [];
  const lines: string[] = [];
  const left = levels.values();
  const path = '/etc/spangate/gateway.yaml';
  const source: ConfigSource = {
    config: parse('info'),
    path,
    read: async () => parse(String(left.next().value)),
  };
  const write = (_fields: object, message: string) => lines.push(message);
  const reload = createReload(source, {
    inTurn: createInTurn(),
    secrets: NO_SECRETS,
    apply,
    onAction: (action) => actions.push(action),
    onOutcome: () => undefined,
    log: { info: write, warn: write, error: write },
  });
  return { reload, actions, lines };
}

describe('reloads that are requested together', () => {
  test('run one at a time, each with the file as it is then', async () => {
    const events: string[] = [];
    const { reload } = create(['warn', 'error', 'fatal'], async ({ log }) => {
      events.push(`begin ${log.level}`);
      await new Promise((resolve) => setImmediate(resolve));
      events.push(`end ${log.level}`);
      return NOTHING;
    });
    await Promise.all([reload(null), reload(null), reload(null)]);
    expect(events).toEqual([
      'begin warn',
      'end warn',
      'begin error',
      'end error',
      'begin fatal',
      'end fatal',
    ]);
  });

  test('do not block each other when one fails because of a defect', async () => {
    const { reload, lines } = create(['warn', 'error'], async ({ log }) => {
      if (log.level === 'warn') throw new TypeError('defect');
      return NOTHING;
    });
    const [first, second] = await Promise.allSettled([reload(null), reload(null)]);
    expect(first).toMatchObject({ status: 'rejected' });
    expect(second).toMatchObject({
      status: 'fulfilled',
      value: { kind: 'reloaded', changed: ['log.level'] },
    });
    expect(lines).toEqual(['configuration reloaded']);
  });
});

test('the next reload is not compared with a configuration that could not be applied', async () => {
  let isRoom = false;
  const { reload, actions } = create(['warn', 'warn'], async () => {
    if (!isRoom) throw new TooManyReplicasError();
    return NOTHING;
  });
  expect(await reload(null)).toMatchObject({
    kind: 'refused',
    problems: [expect.stringMatching('more than')],
  });
  isRoom = true;
  expect(await reload(null)).toMatchObject({ kind: 'reloaded', changed: ['log.level'] });
  expect(actions).toMatchObject([{ action: 'reload', done: null }, { done: { changedKeys: ['log.level'] } }]);
});

test('a key whose file has other contents has changed, and is told once if its own value has, too', async () => {
  const changedFiles = new Set(['log.level', 'clients_file']);
  const { reload } = create(['warn', 'warn'], async () => ({ ...NOTHING, changedFiles }));
  expect(await reload(null)).toMatchObject({ changed: ['log.level', 'clients_file'] });
});

test('a reload without a file is refused', async () => {
  const quiet = () => undefined;
  const reload = createReload(undefined, {
    inTurn: createInTurn(),
    secrets: NO_SECRETS,
    apply: async () => NOTHING,
    onAction: quiet,
    onOutcome: quiet,
    log: { info: quiet, warn: quiet, error: quiet },
  });
  expect(await reload(null)).toMatchObject({ kind: 'refused' });
});
