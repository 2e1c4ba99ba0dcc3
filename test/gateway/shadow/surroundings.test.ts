import { describe, expect, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { startShadowScene, toConfigured, words } from './scene.ts';

describe('a shadow', () => {
  test.for([
    ['with a certificate of an authority that the gateway knows gets copies', true],
    ['with one of another authority gets none, which clients do not notice', false],
  ] as const)('%s', async ([, isKnown]) => {
    await using authority = await createAuthority();
    await using other = await createAuthority();
    const { cert, key } = await authority.issue('server');
    await using a = await startFakeReplica({ name: 'a' });
    await using s = await startFakeReplica({ name: 's', tls: { cert, key } });
    const ca = (isKnown ? authority : other).ca.certPath;
    await using gateway = await startGateway({
      replicas: [toConfigured(a), { ...toConfigured(s), role: 'shadow', tls: { ca } }],
      config: { shadow: { requests: '100%' } },
    });

    const chat = async () => expect((await gateway.chat()).status).toBe(200);
    if (isKnown) while (s.requests.length === 0) await chat();
    else {
      await gateway.untilReachability('s', 'unreachable');
      for (let count = 0; count < 5; count++) await chat();
    }

    expect(s.requests.length > 0).toBe(isKnown);
    expect(gateway.records.every(({ replica }) => replica === 'a')).toBe(true);
  });

  test('gets the name of the model that its alias stands for, and the record has the alias', async () => {
    await using scene = await startShadowScene({ config: { aliases: { 'gpt-4o': 'm' } } });
    const { gateway, a, s } = scene;
    for (const replica of [a, s]) replica.answer(words('one', 'two'));

    await scene.untilCopied(1, { model: 'gpt-4o', stream: true, temperature: 0 });

    const [copy] = s.requests;
    expect(JSON.parse(String(await copy?.body))).toMatchObject({ model: 'm' });
    expect(String(await copy?.body)).toBe(String(await a.requests[0]?.body));
    expect(await gateway.nextRecord()).toMatchObject({ model: 'm', model_requested: 'gpt-4o' });
  });
});
