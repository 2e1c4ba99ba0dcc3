import { describe, expect, test } from 'vitest';
import { newLogicalTimestamp } from '#replicas/drain-state';
import { startFleet } from '../start-fleet.ts';
import { expectDrainPropagates, expectNamedOnce, linesAbout, REVISIONS, SNAPSHOTS } from './foreign-data.ts';

describe.concurrent('foreign data in the shared state', () => {
  test.each([
    ['a gateway whose revision is not a number', 'NaN'],
    ['a gateway whose revision is negative', '-1'],
  ])('%s is named once, and drains propagate as before', (_, revision) =>
    expectNamedOnce(['hset', REVISIONS, newLogicalTimestamp(''), revision], REVISIONS),
  );

  test.each([
    ['revisions', REVISIONS],
    ['snapshots', SNAPSHOTS],
  ])(
    'a string in place of the %s is named, and drains propagate again when it is removed',
    async (_, key) => {
      await using fleet = await startFleet('gw-a', 'gw-b');
      const [a, b] = fleet.gateways;
      await a.drain('y');
      await fleet.redis.command('set', key, 'foo');
      await Promise.all([a, b].map(({ gateway }) => gateway.untilLogged(`"foreign":["${key}"]`)));
      expect(await a.drain('x')).toMatchObject({ scope: 'local', replica: { drained: true } });
      await fleet.redis.command('del', key);
      for (const name of ['x', 'y']) await b.until(name, ({ safe_to_stop }) => safe_to_stop === true);
      await a.undrain('x');
      await expectDrainPropagates(a, b);
      expect(linesAbout(a).length).toBe(1);
      await expectDrainPropagates(await fleet.start('gw-c'), b);
    },
  );
});
