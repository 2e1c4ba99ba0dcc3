import { expect, test } from 'vitest';
import { createChance } from '../../simulation/engine/chance.ts';
import { Schedule } from '../../simulation/engine/schedule.ts';
import { planAnswer } from '../../simulation/world/answers.ts';
import { checkLedgers, checkNumbers } from '../../simulation/world/checks/check-numbers.ts';
import { Chronicle } from '../../simulation/world/checks/chronicle.ts';
import type { ClientView, CollectedSpan } from '../../simulation/world/checks/facts.ts';
import { Losses } from '../../simulation/world/checks/losses.ts';

const TENANT = 'r1-0';

test('numbers that are missing need the word of their gateway, or its death', () => {
  const chronicle = chronicleOf([1, 2, 4]);
  const losses = new Losses();
  expect(checkNumbers(chronicle, [losses])).toMatch(/1 numbers are missing, and it says so of 0/);
  losses.onLog('worker ended', { lost: 1, restart_ms: 0 });
  expect(checkNumbers(chronicle, [losses])).toBeNull();

  const killed = new Losses();
  killed.wasKilled = true;
  expect(checkNumbers(chronicle, [killed])).toBeNull();
});

test('no two records have one number', () => {
  const chronicle = chronicleOf([1, 2, 2]);
  expect(checkNumbers(chronicle, [new Losses()])).toMatch(/has given a number twice: 1,2,2/);
});

test('a record without a number is found', () => {
  const chronicle = chronicleOf([0]);
  expect(checkNumbers(chronicle, [new Losses()])).toMatch(/has no numbers/);
});

test('a ledger without its spans is found, unless its gateway was killed', () => {
  const chronicle = chronicleOf([1, 2]);
  expect(checkLedgers(chronicle, [new Losses()])).toMatch(/it is uncommitted at the end/);
  const killed = new Losses();
  killed.wasKilled = true;
  expect(checkLedgers(chronicle, [killed])).toBeNull();
});

/** A chronicle of one gateway's records with these numbers. */
function chronicleOf(seqs: readonly number[]): Chronicle {
  const chronicle = new Chronicle(new Schedule(() => undefined), { isCalm: false, isPunctual: false });
  const view: ClientView = {
    plan: {
      id: TENANT,
      path: '/v1/embeddings',
      stream: false,
      asksUsage: false,
      promptChars: 1,
      pieces: 1,
      pieceGapMs: 0,
      answers: [planAnswer(createChance(1, 'answer'), false)],
      leavesAfterBytes: null,
      leaves: 'close',
      halfCloses: false,
    },
    gateway: 0,
    isPrompt: true,
    startStep: 1,
    isSent: true,
    response: null,
    hasLeft: false,
    isOver: true,
  };
  chronicle.onClientEnd(view);
  for (const [index, seq] of seqs.entries()) chronicle.onCollected(toRecord(`span ${index}`, seq));
  return chronicle;
}

function toRecord(spanId: string, seq: number): CollectedSpan {
  const attributes = { 'gateway.tenant': TENANT, 'gateway.instance': 'instance', 'gateway.seq': seq };
  const json = Object.entries(attributes).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value },
  }));
  return { spanId, traceId: 'trace', attributes, json: { spanId, attributes: json } };
}
