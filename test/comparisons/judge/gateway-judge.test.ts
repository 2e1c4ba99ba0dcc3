import { describe, expect, test } from 'vitest';
import { createScene, newReplica, START_EPOCH_MS, START_MS } from './scene.ts';

test('a replica that is like its peers is good, and it is said how many requests that takes', async () => {
  const scene = createScene();
  expect(await scene.ask('r0')).toMatchObject({
    verdict: 'undecided',
    requests: 0,
    requestsNeeded: 600,
    candidate: ['r0'],
    baseline: ['r1', 'r2', 'r3'],
    sentence: 'cannot be judged yet: too few requests; about 600 more are needed',
  });
  const needed: (number | null)[] = [];
  let answer = await scene.ask('r0');
  for (let second = 0; second < 60 && 'verdict' in answer && answer.verdict === 'undecided'; second++) {
    scene.pass(1);
    answer = await scene.ask('r0');
    if ('verdict' in answer) needed.push(answer.requestsNeeded);
  }
  expect(answer).toMatchObject({
    verdict: 'good',
    reasons: [],
    requestsNeeded: null,
    sentence: expect.stringMatching(/^is as good as its peers: first token ×/),
  });
  expect(needed.at(-2)).toBeLessThan(600);
});

test.each([
  ['is 20 % slower', { slowness: 1.2 }, ['gaps']],
  ['fails 5 % of its requests', { errorShare: 0.05 }, ['errors']],
  ['is slower to the first token', { slowness: 1.5, isSlowToStart: true }, ['first_token']],
])('a replica that %s is bad', async (_title, scenario, reasons) => {
  const scene = createScene();
  scene.pass(60, scenario);
  const answer = await scene.ask('r0', 'r1,r2,r3');
  expect(answer).toMatchObject({ verdict: 'bad', reasons: expect.arrayContaining(reasons) });
  expect(answer).toMatchObject({
    sentence: expect.stringMatching(/^is worse than its peers: .* requests\)$/),
  });
});

test('before it is bad, it is said that it looks worse, and how many requests that takes', async () => {
  const scene = createScene();
  const sentences: string[] = [];
  const needed: (number | null)[] = [];
  for (let second = 0; second < 60; second++) {
    scene.pass(1, { slowness: 2 });
    const answer = await scene.ask('r0');
    if (!('verdict' in answer) || answer.verdict === 'bad') break;
    sentences.push(answer.sentence);
    needed.push(answer.requestsNeeded);
  }
  expect(sentences.at(-1)).toMatch(/^cannot be judged yet: .*; it looks worse; about \d+ more are needed$/);
  expect(needed).not.toContain(null);
});

test('asking often, once, or by someone else later gives the same figures: the evidence is that of the requests', async () => {
  const often = createScene();
  const once = createScene();
  for (let second = 0; second < 40; second++) {
    often.pass(1);
    once.pass(1);
    await often.ask('r0');
  }
  const last = await often.ask('r0');
  expect(await once.ask('r0')).toEqual(last);
  expect(last).toMatchObject({ fromEpochMs: START_EPOCH_MS, sinceEpochMs: START_EPOCH_MS });
});

test('a group is compared with a group, by model, host, or the labels of pods', async () => {
  const scene = createScene();
  const { replicas } = scene;
  for (const [name, serverId] of [
    ['r0', 'u0'],
    ['r1', 'u1'],
    ['r2', 'u2'],
    ['r3', 'u3'],
  ] as const) {
    const replica = replicas.get(name);
    if (replica !== undefined) replica.serverId = serverId;
  }
  Object.assign(replicas.get('r0') ?? {}, { host: 'gpu-0', models: ['m', 'lora'] });
  scene.pods = { kind: 'listed', uids: ['u0', 'u1', 'elsewhere'] };
  const groups = async (candidate: string, baseline: string | null) => {
    const answer = await scene.ask(candidate, baseline);
    return 'verdict' in answer ? [answer.candidate, answer.baseline] : answer.code;
  };
  expect(await groups('pod.label/version=v2', 'r2,r3')).toEqual([
    ['r0', 'r1'],
    ['r2', 'r3'],
  ]);
  expect(await groups('host:gpu-0', 'host:h')).toEqual([['r0'], ['r1', 'r2', 'r3']]);
  expect(await groups('model:lora', null)).toEqual([['r0'], ['r1', 'r2', 'r3']]);
  expect(await groups('host:gpu-0', 'model:m')).toBe('groups_overlap');
  // Two selectors with labels, and calls soon after each other, cost the API server one call each.
  const before = scene.listedPods;
  for (let call = 0; call < 5; call++) await groups('pod.label/version=v2', 'pod.label/version=v1');
  expect(scene.listedPods - before).toBe(1);

  scene.pass(60, { slowness: 1.5 });
  expect(await scene.ask('pod.label/version=v2', 'r2,r3')).toMatchObject({ verdict: 'bad' });
});

test.each([
  ['nobody', null, { code: 'replica_not_found', param: 'candidate', name: 'nobody' }],
  ['r0', 'r1,nobody', { code: 'replica_not_found', param: 'baseline', name: 'nobody' }],
  ['model:none', null, { code: 'selector_matches_nothing', param: 'candidate' }],
  ['r0', 'host:none', { code: 'selector_matches_nothing', param: 'baseline' }],
  ['r0,r1,r2,r3', null, { code: 'selector_matches_nothing', param: 'baseline' }],
  ['r0,r1', 'r1,r2', { code: 'groups_overlap', names: ['r1'] }],
  ['r0', 'model:m', { code: 'groups_overlap', names: ['r0'] }],
  ['r0', 'other', { code: 'models_differ' }],
  ['pod.label/a=b', null, { code: 'no_pods' }],
])('%s beside %s is refused: %o', async (candidate, baseline, problem) => {
  const scene = createScene();
  scene.replicas.set('other', { ...newReplica(), models: ['n'] });
  expect(await scene.ask(candidate, baseline)).toEqual(problem);
});

test('an API server that refuses, or does not answer, is a problem of its own', async () => {
  const scene = createScene();
  scene.pods = { kind: 'failed', failure: 'refused' };
  expect(await scene.ask('pod.label/a=b')).toEqual({
    code: 'pods_not_readable',
    failure: 'refused',
    isForbidden: true,
  });
});

describe('which requests count', () => {
  test('those since a time; if older ones are not kept, it says from when on', async () => {
    const scene = createScene();
    scene.pass(30, { errorShare: 0.5 });
    const sinceEpochMs = START_EPOCH_MS + 30_000;
    scene.pass(30);
    expect(await scene.ask('r0', null, { sinceEpochMs })).toMatchObject({
      verdict: 'good',
      sinceEpochMs,
      fromEpochMs: sinceEpochMs,
    });
    expect(await scene.ask('r0')).toMatchObject({ verdict: 'bad', reasons: ['errors'] });
    const before = START_EPOCH_MS - 3_600_000;
    expect(await scene.ask('r0', null, { sinceEpochMs: before })).toMatchObject({
      sinceEpochMs: before,
      fromEpochMs: START_EPOCH_MS,
    });
  });

  test('without a time, those since the last undrain: before, it may have been another process', async () => {
    const scene = createScene();
    scene.pass(30, { errorShare: 0.5 });
    Object.assign(scene.replicas.get('r0') ?? {}, { changedMs: START_MS + 30_000 });
    scene.pass(30);
    expect(await scene.ask('r0')).toMatchObject({ verdict: 'good', sinceEpochMs: START_EPOCH_MS + 30_000 });
  });

  test.each([3_600_000, -3_600_000])(
    'the same if the time of day was set by %d ms since then: times are told by the clock as it is now',
    async (stepMs) => {
      const scene = createScene();
      scene.pass(30, { errorShare: 0.5 });
      Object.assign(scene.replicas.get('r0') ?? {}, { changedMs: START_MS + 30_000 });
      scene.clock.stepMs = stepMs;
      scene.pass(30);
      const sinceEpochMs = START_EPOCH_MS + 30_000 + stepMs;
      expect(await scene.ask('r0')).toMatchObject({
        verdict: 'good',
        sinceEpochMs,
        fromEpochMs: sinceEpochMs,
      });
    },
  );

  test('without a time, none of older pods with the same labels: they may have had another version', async () => {
    const scene = createScene();
    scene.pods = { kind: 'listed', uids: ['old-0', 'new-0', 'new-1'] };
    const [r0, r1, r2] = ['r0', 'r1', 'r2'].map((name) => scene.replicas.get(name) ?? newReplica());
    Object.assign(r0 ?? {}, { serverId: 'old-0' });
    const ask = () => scene.ask('pod.label/app=judged', 'r3');
    scene.pass(60);
    expect(await ask()).toMatchObject({ verdict: 'good', sinceEpochMs: START_EPOCH_MS });
    const knownSinceMs = START_MS + 60_000;
    const cameEpochMs = START_EPOCH_MS + 60_000;
    Object.assign(r1 ?? {}, { serverId: 'new-0', knownSinceMs });
    // As long as one of them is left, it is the same comparison.
    expect(await ask()).toMatchObject({ candidate: ['r0', 'r1'], sinceEpochMs: START_EPOCH_MS });
    Object.assign(r0 ?? {}, { isRemoving: true, drained: true, changedMs: knownSinceMs + 9_000 });
    expect(await ask()).toMatchObject({ verdict: 'undecided', requests: 0, sinceEpochMs: cameEpochMs });
    Object.assign(r2 ?? {}, { serverId: 'new-1', knownSinceMs: knownSinceMs + 5_000 });
    expect(await ask()).toMatchObject({ verdict: 'undecided', sinceEpochMs: cameEpochMs });
    // Later the first one goes, as nodes do.
    scene.replicas.delete('r0');
    scene.replicas.delete('r1');
    expect(await ask()).toMatchObject({ candidate: ['r2'], sinceEpochMs: cameEpochMs + 5_000 });
  });

  test('during a ramp only errors of the candidate count, and nothing of a peer', async () => {
    const scene = createScene();
    const r0 = scene.replicas.get('r0');
    Object.assign(r0 ?? {}, { rampShare: 0.5 });
    scene.pass(40, { slowness: 2 });
    expect(await scene.ask('r0')).toMatchObject({ verdict: 'undecided', figures: { error_share: 0.001 } });
    expect(await scene.ask('r1', 'r0')).toMatchObject({ requests: 0, summary: 'too few requests' });
    Object.assign(r0 ?? {}, { rampShare: null });
    scene.pass(40, { slowness: 2 });
    expect(await scene.ask('r0')).toMatchObject({ verdict: 'bad' });
  });

  test('with prefix_affinity what depends on prompts is shown and not judged', async () => {
    const scene = createScene({ policy: 'prefix_affinity' });
    scene.pass(60, { isCold: true });
    const answer = await scene.ask('r0');
    expect(answer).not.toMatchObject({ reasons: expect.arrayContaining(['cached']) });
  });

  test('a peer that is gone stays in a comparison that has begun', async () => {
    const scene = createScene();
    await scene.ask('r0', 'r1,r2');
    scene.replicas.delete('r2');
    expect(await scene.ask('r0', 'r1,r2')).toMatchObject({ baseline: ['r1', 'r2'] });
    expect(await scene.ask('r2', 'r1')).toMatchObject({ code: 'replica_not_found' });
  });
});

describe('a candidate is bad by itself', () => {
  test('if it cannot be reached for five seconds', async () => {
    const scene = createScene();
    Object.assign(scene.replicas.get('r0') ?? {}, {
      reachability: { state: 'unreachable', reason: 'no_answer', sinceMs: START_MS },
    });
    scene.clock.stepMs = 3_600_000;
    scene.pass(4);
    expect(await scene.ask('r0')).toMatchObject({ verdict: 'undecided' });
    scene.pass(2);
    expect(await scene.ask('r0')).toMatchObject({
      verdict: 'bad',
      reasons: ['unreachable'],
      sentence: 'does not answer any more',
    });
    expect(await scene.ask('r0,r1')).toMatchObject({
      sentence: 'has a replica, r0, that does not answer any more',
    });
    Object.assign(scene.replicas.get('r0') ?? {}, {
      reachability: { state: 'reachable', reason: null, sinceMs: START_MS },
    });
    expect(await scene.ask('r0')).toMatchObject({ reasons: [] });
  });

  test('if health finds it failing for five seconds', async () => {
    const scene = createScene();
    const health = { state: 'failing', sinceMs: START_MS, failingBy: ['frozen'] };
    Object.assign(scene.replicas.get('r0') ?? {}, { health, inflight: 12 });
    scene.pass(6);
    expect(await scene.ask('r0')).toMatchObject({
      verdict: 'bad',
      reasons: ['failing'],
      sentence: "is failing by the gateway's health checks (frozen), with 12 requests in flight",
    });
  });

  test('if it is silent while its peers are not, and only if it is given requests', async () => {
    const scene = createScene();
    const silent = { requestsPerSecond: 200 };
    // Its requests go to a replica that nobody asks about.
    scene.replicas.set('frozen', { ...newReplica(), inflight: 40 });
    expect(await scene.ask('frozen')).toMatchObject({ verdict: 'undecided' });
    scene.pass(12, silent);
    expect(await scene.ask('frozen')).toMatchObject({
      verdict: 'bad',
      reasons: ['silent'],
      sentence: 'is silent: 40 requests in flight, and none ends while those of its peers do',
    });
    Object.assign(scene.replicas.get('frozen') ?? {}, { drained: true });
    expect(await scene.ask('frozen')).toMatchObject({ verdict: 'undecided' });
  });
});

test('a comparison that nobody asks for ends after ten minutes, and metrics show those that go on', async () => {
  const scene = createScene();
  await scene.ask('r0');
  await scene.ask('r1', 'r2', { sinceEpochMs: START_EPOCH_MS });
  expect(scene.judge.running).toMatchObject([
    { candidate: 'r0', baseline: null, verdict: 'undecided' },
    { candidate: 'r1', baseline: 'r2' },
  ]);
  scene.clock.nowMs += 600_000;
  await scene.ask('r0');
  expect(scene.judge.running).toMatchObject([{ candidate: 'r0' }]);
  scene.judge.stop();
  expect(scene.judge.running).toEqual([]);
});

test('that the clock ticks between two looks at it leaves nothing out', async () => {
  const scene = createScene();
  scene.clock.tickMs = 1;
  const first = await scene.ask('r0');
  expect(first).toMatchObject({ fromEpochMs: 'sinceEpochMs' in first ? first.sinceEpochMs : null });
  const sinceEpochMs = 'sinceEpochMs' in first ? first.sinceEpochMs : null;
  scene.clock.tickMs = 0;
  expect(await scene.ask('r0', null, { sinceEpochMs })).toMatchObject({ fromEpochMs: sinceEpochMs });
  scene.judge.stop();
});

test('many comparisons take bounded memory: the one that nobody has asked for longest makes room', async () => {
  const scene = createScene();
  for (let index = 0; index < 64; index++) scene.replicas.set(`s${index}`, newReplica());
  for (let index = 0; index < 64; index++) await scene.ask(`s${index}`);
  await scene.ask('s0');
  await scene.ask('r0');
  const running = scene.judge.running.map(({ candidate }) => candidate);
  expect(running).toHaveLength(64);
  expect(running).toContain('s0');
  expect(running).not.toContain('s1');
  scene.judge.stop();
});
