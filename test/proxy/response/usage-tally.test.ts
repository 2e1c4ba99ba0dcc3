import { describe, expect, test } from 'vitest';
import {
  isPlaceholder,
  type UsageFigures,
  UsageTally,
  type UsageTallySettings,
  withPromptTokens,
} from '../../../src/proxy/response/usage-tally.ts';

const create = (changes: Partial<UsageTallySettings> = {}) =>
  new UsageTally({
    choicesPerPrompt: 1,
    isTotalPerChoice: false,
    endpoint: { usageInStream: 'last' },
    ...changes,
  });

test.each<readonly [UsageFigures, boolean]>([
  [{}, true],
  [{ promptTokens: 0, completionTokens: 0 }, true],
  [{ reasoningTokens: 1 }, true],
  [{ promptTokens: 1 }, false],
  [{ completionTokens: 1 }, false],
  [{ uncachedTokens: 1 }, false],
  [{ cachedTokens: 1 }, false],
  [{ cacheCreationTokens: 1 }, false],
])('figures are placeholders where they count nothing: %j', (figures, expected) => {
  expect(isPlaceholder(figures)).toBe(expected);
});

describe('the usage of a stream', () => {
  test('is what was told last, without placeholders', () => {
    const tally = create();
    expect(tally.total()).toEqual({});
    tally.add({ promptTokens: 3, completionTokens: 1 }, null, false);
    tally.add({ promptTokens: 3, completionTokens: 2 }, null, false);
    tally.add({ promptTokens: 0, completionTokens: 0 }, null, true);
    expect(tally.total()).toEqual({ promptTokens: 3, completionTokens: 2 });
  });

  test('is zeros where nothing else was told and the stream ends', () => {
    const tally = create();
    tally.add({ promptTokens: 0 }, null, false);
    expect(tally.total()).toEqual({});
    tally.add({ promptTokens: 0 }, null, true);
    expect(tally.total()).toEqual({ promptTokens: 0 });
    const ofChoice = create();
    ofChoice.add({ completionTokens: 4 }, 0, false);
    ofChoice.add({ completionTokens: 0 }, 0, true);
    expect(ofChoice.total()).toEqual({ completionTokens: 4 });
  });

  test('adds up the choices that run, and each prompt once', () => {
    const tally = create({ choicesPerPrompt: 2 });
    const figures = {
      promptTokens: 10,
      cachedTokens: 1,
      cacheCreationTokens: 2,
      uncachedTokens: 3,
      promptAudioTokens: 4,
      promptImageTokens: 5,
      audioSeconds: 6,
      completionTokens: 7,
      reasoningTokens: 8,
      completionAudioTokens: 9,
    };
    for (const index of [0, 1, 2]) tally.add(figures, index, false);
    tally.add({ ...figures, completionTokens: 1 }, 2, false);
    expect(tally.total()).toEqual({
      promptTokens: 20,
      cachedTokens: 2,
      cacheCreationTokens: 4,
      uncachedTokens: 6,
      promptAudioTokens: 8,
      promptImageTokens: 10,
      audioSeconds: 12,
      completionTokens: 15,
      reasoningTokens: 24,
      completionAudioTokens: 27,
    });
  });

  test('is that of the whole stream once it was told, whatever the choices said', () => {
    const tally = create();
    tally.add({ completionTokens: 1 }, 0, false);
    tally.add({ completionTokens: 5 }, null, false);
    expect(tally.total()).toEqual({ completionTokens: 5 });
  });

  test('is the sum of totals where the engine tells one per choice', () => {
    const tally = create({ choicesPerPrompt: 0, isTotalPerChoice: true });
    for (let count = 0; count < 1_025; count++) tally.add({ completionTokens: 1 }, null, false);
    expect(tally.total()).toEqual({ completionTokens: 1_024 });
  });

  test('is that of all choices if one has ended where the engine tells a total per choice, and others run', () => {
    const tally = create({ choicesPerPrompt: 2, isTotalPerChoice: true });
    tally.add({ completionTokens: 8 }, 1, false);
    tally.add({ completionTokens: 20 }, 0, false);
    tally.add({ promptTokens: 5, completionTokens: 9 }, null, false);
    expect(tally.total()).toEqual({ promptTokens: 5, completionTokens: 28 });
    expect(tally.sourceOf(false)).toBe('progressive');
    tally.add({ promptTokens: 5, completionTokens: 22 }, null, false);
    expect(tally.total()).toEqual({ promptTokens: 5, completionTokens: 31 });
  });

  test('counts 1024 choices at most', () => {
    const tally = create();
    for (const index of [0, 1_023, 1_024]) tally.add({ completionTokens: 1 }, index, false);
    expect(tally.total()).toEqual({ completionTokens: 2 });
  });

  test('is put together where each event tells what has changed', () => {
    const tally = create({ endpoint: { usageInStream: 'in_parts' } });
    tally.add({ uncachedTokens: 5, completionTokens: 1 }, null, false);
    tally.add({ completionTokens: 0 }, 3, false);
    expect(tally.total()).toEqual({ uncachedTokens: 5, completionTokens: 0 });
  });
});

test('the tokens of a prompt are all of its parts, where the API counts these', () => {
  expect(withPromptTokens({ promptTokens: 3, cachedTokens: 1 })).toEqual({
    promptTokens: 3,
    cachedTokens: 1,
  });
  expect(withPromptTokens({ uncachedTokens: 3 }).promptTokens).toBe(3);
  expect(withPromptTokens({ uncachedTokens: 3, cachedTokens: 4, cacheCreationTokens: 5 })).toMatchObject({
    promptTokens: 12,
    cachedTokens: 4,
  });
});

test('each choice has a prompt of its own where one choice per prompt was asked for', () => {
  const tally = create();
  for (const index of [0, 1]) tally.add({ promptTokens: 3, completionTokens: 1 }, index, false);
  expect(tally.total()).toEqual({ promptTokens: 6, completionTokens: 2 });
});
