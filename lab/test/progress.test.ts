import { expect, test } from 'vitest';
import { startProgress } from '#testkit/programs/progress.ts';

/** An output that keeps what is written. */
function openOutput(isTTY: boolean, columns: number) {
  const written: string[] = [];
  return { stream: { isTTY, columns, write: (text: string) => written.push(text) > 0 }, written };
}

test('a terminal shows step, time, title and what is told in one line, which is gone at the end', async () => {
  const { stream, written } = openOutput(true, 80);
  const progress = startProgress(3, { stream, env: {} });
  const result = await progress.during('a rollout', async (tell) => {
    tell('vllm-0 is drained');
    return 7;
  });
  expect(result).toBe(7);
  expect(written.join('')).toMatch(/1\/3 {2}\d:\d\d of \d:\d\d {2}a rollout: vllm-0 is drained/);
  expect(written.at(-1)).toBe('\r\u001b[K');
});

test('a narrow terminal gets a line that fits, also when the step fails', async () => {
  const { stream, written } = openOutput(true, 12);
  const progress = startProgress(1, { stream, env: {} });
  const fail = () => Promise.reject(new Error('no'));
  await expect(progress.during('a long title', fail)).rejects.toThrow('no');
  for (const text of written) expect(text.replace('\r\u001b[K', '').length).toBeLessThan(12);
  expect(written.at(-1)).toBe('\r\u001b[K');
});

test.each([
  ['no terminal', false, {}],
  ['CI', true, { CI: 'true' }],
  ['a dumb terminal', true, { TERM: 'dumb' }],
])('%s gets one plain line for each step', async (_, isTTY, env) => {
  const { stream, written } = openOutput(isTTY, 80);
  const progress = startProgress(2, { stream, env });
  await progress.during('first', async (tell) => tell('something'));
  await progress.during('second', async () => undefined);
  expect(written).toEqual([
    expect.stringMatching(/^1\/2 .*first\n$/),
    expect.stringMatching(/^2\/2 .*second\n$/),
  ]);
});
