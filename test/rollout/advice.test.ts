import { expect, test } from 'vitest';
import type { StopKind } from '#rollout-board/facts';
import { toAdvice } from '../../src/rollout/advice.ts';
import { EXIT_CODES } from '../../src/rollout/stop.ts';

const KINDS = Object.keys(EXIT_CODES).filter((kind): kind is StopKind => kind !== 'done');

test('each way to stop has a next step of its own, with a command that can be typed', () => {
  const advise = (kind: StopKind) =>
    toAdvice({ kind, replica: "it's", restartedBy: 'command', resume: 'gateway rollout --resume' });
  const advices = KINDS.filter((kind) => kind !== 'interrupted' && kind !== 'aborted').map(advise);
  // A replica that is bad needs the same whether it could be rolled back or not.
  expect(new Set(advices).size).toBe(advices.length - 1);
  for (const advice of advices) expect(advice).toContain("--skip 'it'\\''s'".slice(6));
  expect(advise('interrupted')).toBeNull();
});

test('a command is corrected where there is one; elsewhere the engine is restarted by hand', () => {
  const facts = { kind: 'command_failed', replica: 'a', resume: 'gateway rollout --resume' } as const;
  expect(toAdvice({ ...facts, restartedBy: 'command' })).toContain("--exec '…' another one");
  expect(toAdvice({ ...facts, restartedBy: 'elsewhere' })).not.toContain('--exec');
});
