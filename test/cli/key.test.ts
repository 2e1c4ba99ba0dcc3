import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '#config';
import { invoke } from './invoke.ts';

test('a new key is printed with an entry that the configuration accepts', async () => {
  const options = [
    '--tenant',
    'search',
    '--feature',
    'rag',
    '--model',
    'a',
    '--model',
    'b',
    '--expires',
    '2027-01-31',
    '--max-inflight',
    '4',
    '--requests-per-minute',
    '600',
    '--tokens-per-minute',
    '200000',
  ];
  const { exitCode, stdout } = await invoke(['key', 'create', 'search-team', ...options]);
  expect(exitCode).toBe(0);
  const [key = '', , ...entry] = stdout.split('\n');
  expect(key).toMatch(/^sk-[A-Za-z0-9_-]{43}$/);
  const text = `${entry.join('\n')}replicas: [{ name: a, url: "http://a" }]\n`;
  expect(parseConfig(text, { path: 'gateway.yaml', env: {} }).clients).toEqual([
    {
      name: 'search-team',
      keySha256: [hash('sha256', key)],
      tenant: 'search',
      feature: 'rag',
      models: ['a', 'b'],
      expiresAtMs: Date.parse('2027-01-31'),
      maxInflight: 4,
      requestsPerMinute: 600,
      tokensPerMinute: 200_000,
    },
  ]);
});

test('no two keys are the same, and JSON has both parts', async () => {
  const outputs = await Promise.all([1, 2].map(() => invoke(['key', 'create', 'a', '--json'])));
  const [first, second] = outputs.map(({ stdout }) => parse(stdout));
  expect(first.key).not.toBe(second.key);
  expect(first.client).toEqual({ name: 'a', key_sha256: hash('sha256', first.key) });
});

test.each([
  [['key', 'create'], 'NAME is missing'],
  [['key', 'delete', 'a'], "the only action is 'create'"],
  [['key', 'create', 'a b'], 'NAME consists of letters'],
  [['key', 'create', 'a', '--expires', 'soon'], "option '--expires' needs a day"],
  [['key', 'create', 'a', '--expires', '2026-01-31'], "option '--expires' needs a time that is not over"],
  [['key', 'create', 'a', '--tenant', ''], "option '--tenant' needs a text of one line, at most"],
  [['key', 'create', 'a', '--model', 'a\nb'], "option '--model' needs a text of one line, at most"],
  [
    ['key', 'create', 'a', '--max-inflight', '0'],
    "option '--max-inflight' needs a whole number from 1 to 1000000",
  ],
])('%j is a wrong command line', async (args, message) => {
  const { exitCode, stderr } = await invoke(args);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(message);
});
