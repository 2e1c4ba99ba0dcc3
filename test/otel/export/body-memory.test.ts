import { expect, test } from 'vitest';
import { BodyMemory } from '../../../otel/export/otlp-exporter.ts';

test('memory is used again for a body that fits, once it is given back', () => {
  const memory = new BodyMemory();
  const first = memory.take(100_000);
  const meanwhile = memory.take(100_000);
  expect(meanwhile.buffer).not.toBe(first.buffer);
  memory.giveBack(first);
  const second = memory.take(100_001);
  expect(second.buffer).toBe(first.buffer);
  expect(second).toHaveLength(100_001);
  memory.giveBack(second);
  const larger = memory.take(1_000_000);
  expect(larger.buffer).not.toBe(first.buffer);
  expect(larger).toHaveLength(1_000_000);
});
