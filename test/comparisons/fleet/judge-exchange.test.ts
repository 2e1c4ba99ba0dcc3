import { describe, expect, test } from 'vitest';
import { JudgeExchange } from '#comparisons';
import { GroupComparison } from '#verdict';
import { parseJudgeMessage, printJudgeMessage } from '../../../src/comparisons/fleet/judge-text.ts';
import { createScene, type JudgeScene } from '../judge/scene.ts';

/** Gateways on one channel, which delivers at once. Each serves requests of its own. */
function createFleet(count: number) {
  const listeners = new Set<(message: string) => void>();
  const openChannel = (onMessage: (message: string) => void) => {
    listeners.add(onMessage);
    return {
      publish: (message: string) => {
        for (const listener of [...listeners]) listener(message);
      },
      close: () => listeners.delete(onMessage),
    };
  };
  const start = (seed: number) => {
    const scene = createScene({ exchange: new JudgeExchange(openChannel, `gateway ${seed}`), seed });
    scene.judge.start();
    return scene;
  };
  const scenes = Array.from({ length: count }, (_, seed) => start(seed));
  const stop = () => {
    for (const { judge } of scenes) judge.stop();
  };
  const say = (message: string) => {
    for (const listener of [...listeners]) listener(message);
  };
  return { scenes, start, stop, say };
}

const verdictOf = async (scene: JudgeScene | undefined) => {
  const answer = await scene?.ask('r0');
  if (answer === undefined || 'code' in answer) throw new Error('no verdict');
  return answer;
};

test('the requests of all gateways of a fleet make one verdict, at each of them', async () => {
  const { scenes, stop } = createFleet(3);
  const scenario = { slowness: 1.2 };
  for (const scene of scenes) scene.pass(12, scenario);
  const alone = createScene({ seed: 0 });
  alone.pass(12, scenario);
  const ofOne = await verdictOf(alone);
  expect(ofOne).toMatchObject({ verdict: 'undecided', gateways: 1 });
  for (const scene of scenes) {
    // The first answer waits a moment for the others, which may be late on a busy machine.
    await expect.poll(() => verdictOf(scene)).toMatchObject({ verdict: 'bad', gateways: 3 });
    expect((await verdictOf(scene)).requests).toBeGreaterThan(2 * ofOne.requests);
  }
  stop();
});

test('what a gateway serves later counts at the others, until nobody asks any more', async () => {
  const { scenes, stop } = createFleet(2);
  const [first, second] = scenes;
  await expect.poll(() => verdictOf(first)).toMatchObject({ gateways: 2, requests: 0 });
  second?.pass(10);
  await expect.poll(async () => (await verdictOf(first)).requests).toBeGreaterThan(100);
  expect(first?.ring.end).toBe(0);
  stop();
});

test('a gateway that has restarted is one, and what it served before counts', async () => {
  const { scenes, start, stop } = createFleet(2);
  const [first, second] = scenes;
  const requestsAfter = async (served: JudgeScene | undefined) => {
    served?.pass(1);
    return (await verdictOf(first)).requests;
  };
  await expect.poll(() => requestsAfter(second)).toBeGreaterThan(100);
  second?.judge.stop();
  const before = await requestsAfter(undefined);
  const again = start(1);
  await expect.poll(() => requestsAfter(again)).toBeGreaterThan(before);
  expect(await verdictOf(first)).toMatchObject({ gateways: 2 });
  again.judge.stop();
  stop();
});

test('a gateway that knows none of the replicas tells nothing, and hinders nobody', async () => {
  const { scenes, stop } = createFleet(2);
  const [first, second] = scenes;
  second?.replicas.clear();
  first?.pass(5);
  expect(await verdictOf(first)).toMatchObject({ gateways: 1 });
  stop();
});

/** As it is written. */
type Message = Readonly<Record<'questions' | 'facts', readonly unknown[]>>;

describe('a message', () => {
  const id = 'ab'.repeat(8);
  const question = { id, candidate: 'r0', baseline: null, sinceAgoMs: 5 };
  const facts = {
    id,
    comparison: { ...new GroupComparison().facts, evidence: { longer: [0, 1, 2, 3, 4] }, own: 7 },
  };
  const whole = { gateway: 'cd'.repeat(8), questions: [question], facts: [facts] };

  test('is read as it was written', () => {
    expect(parseJudgeMessage(printJudgeMessage(whole))).toEqual(whole);
  });

  test.each<[string, (message: Message) => unknown]>([
    ['of nothing', () => ''],
    ['of another version', (message) => ({ ...message, version: 2 })],
    ['of a gateway with no id', (message) => ({ ...message, gateway: '../x' })],
    ['with evidence for an unknown claim', (message) => withEvidence(message, { other: [0] })],
    ['with too few bets', (message) => withEvidence(message, { longer: [0] })],
    ['with a bet that is no number', (message) => withEvidence(message, { longer: [0, 1, 2, 3, null] })],
    [
      'with negative counts',
      (message) => ({ ...message, facts: [{ id, comparison: { ...facts.comparison, own: -1 } }] }),
    ],
    [
      'with very many questions',
      (message) => ({ ...message, questions: Array.from({ length: 65 }, () => message.questions[0]) }),
    ],
  ])('%s is none', async (_title, change) => {
    const text = JSON.stringify(change(JSON.parse(printJudgeMessage(whole))));
    expect(parseJudgeMessage(text)).toBeNull();
    const { scenes, say, stop } = createFleet(1);
    scenes[0]?.pass(3);
    const before = await verdictOf(scenes[0]);
    say(text);
    expect(await verdictOf(scenes[0])).toEqual(before);
    stop();
  });

  test('about what nobody has asked is forgotten', async () => {
    const { scenes, say, stop } = createFleet(1);
    say(printJudgeMessage(whole));
    expect(await verdictOf(scenes[0])).toMatchObject({ gateways: 1, requests: 0 });
    stop();
  });

  function withEvidence(message: Message, evidence: object) {
    return { ...message, facts: [{ id, comparison: { ...facts.comparison, evidence } }] };
  }
});
