import { describe, expect, test } from 'vitest';
import { type Row, toFrame } from '../../../src/rollout/report/frame.ts';

const DONE: Row = {
  name: 'vllm-0',
  phase: 'done',
  seconds: 95,
  text: 'is as good as its peers: first token ×1.00, gaps ×1.00, 0 % errors, 215 requests',
};
const LIVE: Row = {
  name: 'vllm-1',
  phase: 'ramp',
  seconds: 5,
  text: 'serves 29 % of its turns, 3 in flight',
};
const WAITING: Row = { name: 'vllm-2', phase: 'waiting', seconds: null, text: 'waits' };

const frame = (rows: readonly Row[], columns: number, height = 24) => toFrame(rows, { columns, height });

describe('the frame of a rollout', () => {
  test('has a line for each replica, with its time before its text', () => {
    expect(frame([DONE, LIVE, WAITING], 120)).toEqual([
      `✓ vllm-0  1:35  ${DONE.text}`,
      `↑ vllm-1  0:05  ${LIVE.text}`,
      '· vllm-2        waits',
    ]);
  });

  test.each([120, 80, 60, 30, 12])('keeps every word within %i columns', (columns) => {
    const lines = frame([DONE, LIVE], columns);
    for (const line of lines) expect(line.length).toBeLessThan(columns);
    const words = lines.join('').replaceAll(' ', '');
    expect(words).toContain(DONE.text.replaceAll(' ', ''));
    expect(words).toContain(LIVE.text.replaceAll(' ', ''));
  });

  test('puts the text below the name on a narrow terminal', () => {
    expect(frame([LIVE, WAITING], 30)).toEqual([
      '↑ vllm-1  0:05',
      '    serves 29 % of its turns,',
      '    3 in flight',
      '· vllm-2',
    ]);
  });

  test('shortens a name that would leave no room', () => {
    const [line] = frame([{ ...LIVE, name: 'a-replica-with-a-very-long-name' }], 30);
    expect(line).toBe('↑ a-replica-wit…  0:05');
  });

  test('keeps the replicas under way on a low terminal, and counts the others', () => {
    const waiting = Array.from({ length: 9 }, (_, index) => ({ ...WAITING, name: `vllm-${index + 2}` }));
    const lines = frame([DONE, LIVE, ...waiting], 120, 4);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toContain(LIVE.text);
    expect(lines[3]).toBe('  not shown: 7 waiting, 1 done');
  });
});
