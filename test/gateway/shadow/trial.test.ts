import { describe, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { startShadowScene, toConfigured } from './scene.ts';

const post = { method: 'POST' };

describe('a replica that becomes a shadow for a while', () => {
  test.for([1, 2])(
    'gets no client any more, and serves again afterwards, with %d workers',
    async (workers) => {
      await using scene = await startShadowScene({ role: 'serve', workers });
      const { gateway } = scene;

      const begun = await gateway.admin('/admin/replicas/s/shadow?requests=100%25&for=10m', post);
      expect(begun.status).toBe(200);
      expect(await begun.json()).toMatchObject({ was_shadow: false, replica: { shadow: { requests: 1 } } });
      for (let count = 0; count < 6; count++) await (await gateway.chat()).text();
      await scene.untilCopied(1);
      expect((await gateway.waitForRecords(6)).every(({ replica }) => replica === 'a')).toBe(true);

      await gateway.admin('/admin/replicas/s/unshadow', post);
      const before = gateway.records.length;
      for (let count = 0; count < 8; count++) await (await gateway.chat()).text();
      const later = (await gateway.waitForRecords(before + 8)).slice(before);
      expect(new Set(later.map(({ replica }) => replica))).toEqual(new Set(['a', 's']));
    },
  );

  test('is judged afterwards by what it serves from then on', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    const judge = async () => (await gateway.admin('/admin/verdict?candidate=s')).json();
    const before = (await judge()) as { since: string };
    await gateway.admin('/admin/replicas/s/shadow?requests=100%25&for=10m', post);
    const endedMs = Date.now();
    await gateway.admin('/admin/replicas/s/unshadow', post);

    const { since } = (await judge()) as { since: string };
    expect(Date.parse(since)).toBeGreaterThanOrEqual(endedMs);
    expect(Date.parse(before.since)).toBeLessThan(endedMs);
  });

  test('is refused as one if it is the last that serves its model', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;
    await gateway.admin('/admin/replicas/a/drain', post);

    const refused = await gateway.admin('/admin/replicas/s/shadow', post);

    expect(refused.status).toBe(409);
    expect(await refused.json()).toMatchObject({ error: { code: 'last_replica' } });
    expect((await gateway.chat()).status).toBe(200);
  });

  test('is refused without a share: it would serve nobody, and get no copies', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;

    const refused = await gateway.admin('/admin/replicas/s/shadow?requests=0.00%25', post);

    expect(refused.status).toBe(400);
    expect(await refused.json()).toMatchObject({
      error: { message: expect.stringContaining('more than 0%') },
    });
    const { replica } = (await (await gateway.admin('/admin/replicas/s')).json()) as {
      replica: { shadow: object | null };
    };
    expect(replica.shadow).toBeNull();
  });

  test.for(['drain', 'unshadow'])('is none if %s is called while the others are asked', async (later) => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway, a } = scene;
    const gate = createGate();
    // The probe of the start would be taken for the shadow's.
    await gateway.untilReachability('a', 'reachable');
    a.answerProbes(gate.script);
    const before = a.probes.length;
    const shadow = gateway.admin('/admin/replicas/s/shadow', post);
    await a.untilProbes(before + 1);
    await gateway.admin(`/admin/replicas/s/${later}`, post);
    gate.open();

    expect(await (await shadow).json()).toMatchObject({
      replica: { shadow: null, drained: later === 'drain' },
      warning: 'A later drain or unshadow has replaced it.',
    });
  });

  test('gets copies although it is drained, and no more after another drain', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway, a, s } = scene;
    await gateway.admin('/admin/replicas/s/drain', post);

    await gateway.admin('/admin/replicas/s/shadow?requests=100%25', post);
    await scene.untilCopied(3);
    await gateway.admin('/admin/replicas/s/drain', post);
    const [count, served] = [s.requests.length, a.requests.length];
    for (let more = 0; more < 5; more++) await (await gateway.chat()).text();

    expect(s.requests).toHaveLength(count);
    expect(a.requests).toHaveLength(served + 5);
    const shown = (await gateway.replicas()).find(({ name }) => name === 's');
    expect(shown).toMatchObject({ drained: true, shadow: null });
  });

  test('serves again by itself after a time', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway } = scene;

    await gateway.admin('/admin/replicas/s/shadow?for=50ms', post);

    await expect
      .poll(async () => (await gateway.replicas()).find(({ name }) => name === 's'))
      .toMatchObject({ shadow: null });
  });

  test.for([
    ['of one that serves', 'serve'],
    ['of one that the configuration makes a shadow', 'shadow'],
  ] as const)('is logged when it begins and when it ends, %s', async ([, role]) => {
    await using scene = await startShadowScene({ role });
    const { gateway } = scene;
    const logged = () =>
      gateway.logLines.flatMap((line) => {
        const { msg, token_name } = JSON.parse(line) as { msg: string; token_name: string | null };
        return msg.startsWith('shadow ') ? [[msg, token_name]] : [];
      });

    await gateway.admin('/admin/replicas/s/shadow?for=10m', post);
    await gateway.admin('/admin/replicas/s/shadow?for=11m', post);
    await gateway.admin('/admin/replicas/s/unshadow', post);
    await gateway.admin('/admin/replicas/s/shadow?for=10m', post);
    await gateway.admin('/admin/replicas/s/drain', post);
    await gateway.admin('/admin/replicas/s/unshadow', post);
    await gateway.admin('/admin/replicas/s/shadow?for=1ms', post);

    const [begun, ended] = [
      ['shadow begins', 'admin'],
      ['shadow ends', 'admin'],
    ];
    await expect.poll(logged).toEqual([begun, ended, begun, ended, begun, ['shadow ends', null]]);
  });

  test('is on the timeline with its share and who made it one, once for each share', async () => {
    await using scene = await startShadowScene({ role: 'serve', config: { history: {} } });
    const { gateway } = scene;
    const told = async () => {
      const answer = await (await gateway.admin('/admin/timeline')).json();
      const events = (answer as { events: { kind: string; until: string | null; details: object }[] }).events;
      return events.flatMap(({ kind, until, details }) =>
        kind === 'shadow' ? [{ goesOn: until === null, ...details }] : [],
      );
    };
    await gateway.admin('/admin/replicas/s/shadow?requests=10%25&for=10m', post);
    await gateway.admin('/admin/replicas/s/shadow?requests=10%25&for=11m', post);
    await gateway.admin('/admin/replicas/s/shadow?requests=20%25&for=10m', post);
    await expect.poll(told).toEqual([
      { goesOn: true, by: 'admin', share: 0.2 },
      { goesOn: false, by: 'admin', share: 0.1 },
    ]);
    await gateway.admin('/admin/replicas/s/drain', post);
    await expect.poll(told).toMatchObject([{ goesOn: false }, { goesOn: false }]);
  });

  test('is none any more as another server, and the log says so once', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway, a, s } = scene;
    await using other = await startFakeReplica();
    await gateway.admin('/admin/replicas/s/shadow?for=10m', post);
    gateway.writeConfig({ replicas: [a, { ...toConfigured(s), url: other.url }] });
    await gateway.reload();
    const ended = () => gateway.logLines.filter((line) => line.includes('shadow ends'));
    expect(ended()).toHaveLength(1);
    expect((await gateway.replicas())[1]).toMatchObject({ name: 's', url: other.url, shadow: null });
    await gateway.admin('/admin/replicas/s/shadow?for=1ms', post);
    await expect.poll(ended).toHaveLength(2);
  });

  test('by a reload becomes one, but not if it alone serves a model', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway, a, s } = scene;
    const withRoles = (one: 'serve' | 'shadow', other: 'serve' | 'shadow') =>
      [
        { ...toConfigured(a), models: 'auto', role: one },
        { ...toConfigured(s), models: 'auto', role: other },
      ] as const;
    s.list({ models: ['m', 'only'] });
    gateway.writeConfig({ replicas: withRoles('serve', 'serve') });
    await gateway.reload();
    await expect.poll(async () => (await gateway.replicas())[1]?.models).toEqual(['m', 'only']);

    gateway.writeConfig({ replicas: withRoles('serve', 'shadow') });
    const refused = await gateway.reload();
    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('s cannot become a shadow, as it alone serves only');

    const beforeMs = Date.now();
    gateway.writeConfig({ replicas: withRoles('shadow', 'serve') });
    expect((await gateway.reload()).status).toBe(200);
    const verdict = (await (await gateway.admin('/admin/verdict?candidate=a')).json()) as { since: string };
    expect(Date.parse(verdict.since)).toBeGreaterThanOrEqual(beforeMs);
    const before = gateway.records.length;
    for (let count = 0; count < 4; count++) await (await gateway.chat()).text();
    const later = (await gateway.waitForRecords(before + 4)).slice(before);
    expect(later.every(({ replica }) => replica === 's')).toBe(true);
  });

  test('leaves no reload to make a shadow of the other one that serves its model', async () => {
    await using scene = await startShadowScene({ role: 'serve' });
    const { gateway, a, s } = scene;
    await expect
      .poll(async () => (await gateway.replicas()).map(({ models }) => models))
      .toEqual([['m'], ['m']]);
    await gateway.admin('/admin/replicas/s/shadow?for=10m', post);
    gateway.writeConfig({ replicas: [{ ...toConfigured(a), role: 'shadow' }, toConfigured(s)] });

    const refused = await gateway.reload();

    expect(refused.status).toBe(422);
    expect(await refused.text()).toContain('a cannot become a shadow, as it alone serves m');
    expect((await gateway.chat()).status).toBe(200);
  });
});
