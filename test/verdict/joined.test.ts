import { expect, test } from 'vitest';
import { toRandom } from '#testkit/random.ts';
import { PLAIN, simulateSeconds } from '#testkit/verdict/workload.ts';
import { GroupComparison } from '#verdict';

const SETTINGS = { falseAlarm: 0.001, missed: 0.05, sharesPrompts: true };

test.each([
  ['is like its peers', PLAIN],
  ['is slower', { ...PLAIN, slowness: 1.2 }],
  ['fails', { ...PLAIN, errorShare: 0.1 }],
])(
  'comparisons by different requests say together what one says by all of them: a replica that %s',
  (_title, scenario) => {
    const one = new GroupComparison();
    const parts = [new GroupComparison(), new GroupComparison(), new GroupComparison()];
    let second = 0;
    for (const block of simulateSeconds(scenario, toRandom(1))) {
      const settings = { comparesTimes: second >= 5 };
      one.addBlock(block, settings);
      parts[second % parts.length]?.addBlock(block, settings);
      second += 1;
      const joined = new GroupComparison(parts.map(({ facts }) => facts));
      expect(joined.judge(SETTINGS)).toEqual(one.judge(SETTINGS));
      expect([joined.requests, joined.peerRequests]).toEqual([one.requests, one.peerRequests]);
      const figures = Object.entries(one.toFigures()).map(([name, value]) => [
        name,
        expect.closeTo(value, 9),
      ]);
      expect(joined.toFigures()).toEqual(Object.fromEntries(figures));
      if (second === 60) return;
    }
  },
);

test('what nobody has compared says nothing', () => {
  expect(new GroupComparison([]).facts).toEqual(new GroupComparison().facts);
  expect(new GroupComparison([new GroupComparison().facts]).facts).toEqual(new GroupComparison().facts);
});
