import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UsageError } from '../../../../src/commands/command-line/command.ts';
import { fillCommand } from '../../../../src/commands/rollout/restart/fill-command.ts';

const FACTS = { name: 'vllm-a', host: 'gpu-1', port: '8000', url: 'http://gpu-1:8000' };
const fill = (template: string, facts: Partial<typeof FACTS> = {}) =>
  fillCommand(template, { ...FACTS, ...facts });
const run = (command: string) => execFileSync('/bin/sh', ['-c', command], { encoding: 'utf8' });

test('each placeholder is what it names', () => {
  expect(run(fill('printf "%s|" {name} {host} {port} {url}'))).toBe('vllm-a|gpu-1|8000|http://gpu-1:8000|');
});

describe('a hostile value is one word, and nothing else', () => {
  const hostile = fc
    .string({ unit: fc.constantFrom(...'ab \'"`$(){};&|<>\\*?!#~=%-\u00e9') })
    .filter((value) => !value.startsWith('-'));

  test.each([
    ['printf %s {host}', (value: string) => value],
    ["printf %s 'a {host} b'", (value: string) => `a ${value} b`],
    ['printf %s "a {host} b"', (value: string) => `a ${value} b`],
    ["printf %s it\\'s{host}", (value: string) => `it's${value}`],
  ])('in %s', (template, expected) => {
    fc.assert(
      fc.property(hostile, (host) => {
        expect(run(fill(template, { host }))).toBe(expected(host));
      }),
      { numRuns: 60 },
    );
  });
});

test('what programs take for an option, or holds control characters, is refused', () => {
  for (const host of ['-oProxyCommand=x', 'a\nb', '\u0000']) {
    expect(() => fill('ssh {host} restart', { host })).toThrow(UsageError);
  }
});

test('a placeholder that does not exist is refused, and braces of the shell are left alone', () => {
  expect(() => fill('ssh {hots}')).toThrow('{hots}: there are {name}, {host}, {port}, {url}');
  const ofShell = ['name=x; printf %s "$', "{name}\" | awk '{print $1}'"].join('');
  expect(run(fill(ofShell))).toBe('x\n');
});
