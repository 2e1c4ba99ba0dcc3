import { describe, expect, test } from 'vitest';
import { askUntil } from '#testkit/ask-until.ts';
import { answerJson, COMPLETION, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { keepChatting } from '#testkit/load/paced-chats.ts';
import type { StartedGateway } from '#testkit/start-gateway.ts';
import {
  askVerdict,
  type ShadowScene,
  type ShadowVerdict,
  startShadowScene,
  toConfigured,
  words,
} from './scene.ts';

/** Sends chats until what the pairs show is as wanted. */
async function untilShown(
  { gateway }: ShadowScene,
  members: object,
  isShown: (verdict: ShadowVerdict) => boolean,
): Promise<ShadowVerdict> {
  await using _chats = keepChatting(gateway, { clientCount: 4, pauseMs: 60, members });
  return await askUntil(() => askVerdict(gateway), isShown, 250);
}

const callOf = (args: string) => ({
  ...COMPLETION,
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c1', type: 'function', function: { name: 'find', arguments: args } }],
      },
      finish_reason: 'tool_calls',
    },
  ],
});

describe('the verdict on a shadow', () => {
  test('is good if its answers are those that clients get', async () => {
    await using scene = await startShadowScene({ shadow: { max_inflight: 50 } });
    for (const replica of [scene.a, scene.s]) replica.answer(words('one', 'two', 'three'));

    const verdict = await untilShown(
      scene,
      { stream: true, temperature: 0 },
      ({ requests, pairs }) => requests >= 20 && (pairs?.outputs.compared ?? 0) > 0,
    );

    expect(verdict.verdict).not.toBe('bad');
    expect(verdict.pairs?.outputs).toMatchObject({ equal: verdict.pairs?.outputs.compared, parts_after: [] });
    expect(verdict.figures).toMatchObject({ error_share: 0, lengths_ratio: expect.closeTo(1, 1) });
  });

  test('tells of pairs that are too few to compare', async () => {
    await using scene = await startShadowScene();
    await scene.untilCopied(5);
    await expect
      .poll(() => askVerdict(scene.gateway))
      .toMatchObject({
        requests: 0,
        pairs: { waiting: 5 },
        sentence: expect.stringContaining(
          'cannot be judged yet: 5 pairs, too few to compare; about 300 more',
        ),
      });
  });

  test('says nothing of copies and requests of the server that had its name before a reload', async () => {
    await using scene = await startShadowScene({ shadow: { max_inflight: 2 } });
    const { gateway, a, s: former } = scene;
    await using present = await startFakeReplica({ name: 's' });
    former.answer(hang);
    await scene.untilCopied(2);
    for (let count = 0; count < 3; count++) await (await gateway.chat()).text();
    await expect
      .poll(() => askVerdict(gateway))
      .toMatchObject({ pairs: { skipped: { shadow_full: expect.any(Number) } } });
    gateway.writeConfig({
      replicas: [toConfigured(a), { ...toConfigured(present), role: 'shadow' }],
      config: { gateway: { workers: 1 }, shadow: { requests: '100%' } },
    });
    expect((await gateway.reload()).status).toBe(200);
    former.resetConnections();
    while (present.requests.length < 3) await (await gateway.chat()).text();

    await expect
      .poll(() => askVerdict(gateway))
      .toMatchObject({ pairs: { waiting: present.requests.length } });
    expect((await askVerdict(gateway)).pairs?.skipped).not.toHaveProperty('shadow_full');
  });

  test('says that outputs differ, after which token, and that the shadow repeats its own', async () => {
    await using scene = await startShadowScene({ shadow: { max_inflight: 50 } });
    scene.a.answer(words('The capital ', 'of France ', 'is Paris, ', 'of course'));
    scene.s.answer(words('The capital ', 'of France ', 'is Lyon, ', 'of course'));

    const verdict = await untilShown(
      scene,
      { stream: true, seed: 7 },
      ({ verdict: found }) => found === 'bad',
    );

    expect(verdict.reasons).toEqual(['outputs']);
    expect(verdict.sentence).toContain('outputs differ, and the shadow repeats its own');
    const { outputs } = verdict.pairs ?? {};
    expect(outputs?.parts_after.findIndex((count) => count > 0)).toBe(2);
    expect(outputs?.again.as_shadow).toBeGreaterThan(0);
    expect(outputs?.again).toMatchObject({ as_primary: 0, other: 0 });
  });

  test('does not compare outputs of requests that may have any', async () => {
    await using scene = await startShadowScene({ shadow: { max_inflight: 50 } });
    scene.a.answer(words('heads'));
    scene.s.answer(words('tails'));

    const verdict = await untilShown(
      scene,
      { stream: true, temperature: 0.7 },
      ({ requests }) => requests >= 20,
    );

    expect(verdict.pairs?.outputs.compared).toBe(0);
  });

  test.for([1, 2])('is bad if it fails what its primary answers, with %d workers', async (workers) => {
    await using scene = await startShadowScene({ workers, shadow: { max_inflight: 50 } });
    scene.s.answer(answerJson({ error: { message: 'out of memory' } }, { status: 500 }));

    const verdict = await untilShown(scene, {}, ({ verdict: found }) => found === 'bad');

    expect(verdict.reasons).toContain('errors');
    expect((await scene.gateway.chat()).status).toBe(200);
  });

  test('is bad if it calls tools in another way', async () => {
    await using scene = await startShadowScene({ shadow: { max_inflight: 50 } });
    scene.a.answer(answerJson(callOf('{"city":"Paris"}')));
    scene.s.answer(answerJson(callOf('{"city":"Pa')));

    const verdict = await untilShown(scene, {}, ({ verdict: found }) => found === 'bad');

    expect(verdict.reasons).toEqual(['tool_calls']);
    expect(verdict.pairs?.tool_calls.same).toBe(0);
  });

  test('is refused for a shadow beside one that serves', async () => {
    await using scene = await startShadowScene();
    const { gateway } = scene;

    expect(await errorOf(gateway, 'candidate=s,a')).toBe('selector_matches_nothing');
    expect(await errorOf(gateway, 'candidate=a&baseline=s')).toBe('shadows_mixed');
  });
});

async function errorOf(gateway: StartedGateway, query: string): Promise<string | undefined> {
  return (await askVerdict(gateway, query)).error?.code;
}
