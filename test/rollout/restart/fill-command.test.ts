import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { UsageError } from '#cli/command';
import { runs } from '#testkit/runs.ts';
import {
  fillCommand,
  findUnfitFact,
  toCommandFacts,
  toPositionals,
  toVariables,
} from '../../../src/rollout/restart/fill-command.ts';

const REPLICA = { name: 'vllm-a', host: 'gpu-1', url: 'http://gpu-1:8000' };
/** Begins a parameter of the shell. */
const OPEN = '${';
const SHELLS = ['dash', 'bash', 'busybox sh'].filter(
  (shell) => spawnSync(shell.split(' ')[0] ?? '', ['-c', 'true']).status !== null,
);

interface Run {
  /** The command as the shell gets it. */
  readonly command: string;
  readonly replica?: Partial<typeof REPLICA>;
}

/** Runs commands as a rollout does, by a shell: all of them below one process, because starting many takes long. */
function runAll(runs: readonly Run[], shell: string, cwd: string) {
  const quote = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const script = runs.map(({ command, replica }) => {
    const facts = toCommandFacts({ ...REPLICA, ...replica });
    const variables = Object.entries(toVariables(facts)).map(([name, value]) => `${name}=${quote(value)}`);
    const args = ['-c', command, 'sh', ...toPositionals(facts)].map(quote);
    return `${variables.join(' ')} ${shell} ${args.join(' ')} </dev/null 2>/dev/null; printf '\\001%s\\002' $?\n`;
  });
  const { stdout } = spawnSync('sh', [], { input: script.join(''), encoding: 'utf8', cwd });
  const outputs = stdout.split('\u0002').slice(0, -1);
  expect(outputs).toHaveLength(runs.length);
  return outputs.map((output) => {
    const [text = '', status] = output.split('\u0001');
    return { text, status };
  });
}

/** The output of one command by /bin/sh. */
const run = (template: string, replica: Partial<typeof REPLICA> = {}) =>
  runAll([{ command: fillCommand(template), replica }], '/bin/sh', tmpdir())[0]?.text;

test('each placeholder is what it names, as are the positional arguments and the variables', () => {
  const expected = 'vllm-a|gpu-1|8000|http://gpu-1:8000|';
  expect(run('printf "%s|" {name} {host} {port} {url}')).toBe(expected);
  expect(run('printf "%s|" "$1" "$2" "$3" "$4"')).toBe(expected);
  const variables = ['NAME', 'HOST', 'PORT', 'URL'].map((name) => `"$GATEWAY_REPLICA_${name}"`);
  expect(run(`printf "%s|" ${variables.join(' ')}`)).toBe(expected);
  expect(run('printf %s {port}', { url: 'https://gpu-1/v1' })).toBe('443');
});

describe.each(SHELLS)('with %s a hostile value is one word, and nothing else', (shell) => {
  const hostile = fc
    .string({ unit: fc.constantFrom(...'ab \'"`$(){};&|<>\\*?!#~=%-[]\u00e9') })
    .filter((value) => !value.startsWith('-'));

  test.each([
    ['printf %s {host}', (value: string) => value],
    ["printf %s 'a '{host}' b'", (value: string) => `a ${value} b`],
    ['printf %s "a "{host}" b"', (value: string) => `a ${value} b`],
    ["printf %s it\\'s{host}", (value: string) => `it's${value}`],
    [
      `printf %s "$(printf '%s)' '(' "${OPEN}#HOME} $$")">/dev/null; # it's\nprintf %s {host}`,
      (value: string) => value,
    ],
    ['(cd / && printf %s {host}) \\\n  || exit 1', (value: string) => value],
    ['case {host} in {host}) printf %s {host};; *) printf %s no;; esac', (value: string) => value],
    ['f() { printf %s {host}; }; f x', (value: string) => value],
    ['printf %s "a $2 b"', (value: string) => `a ${value} b`],
    ['printf %s "$(printf %s. "$2")"', (value: string) => `${value}.`],
    ['cat <<EOF\n$GATEWAY_REPLICA_HOST\nEOF', (value: string) => `${value}\n`],
  ])('in %s', (template, expected) => {
    const hosts = fc.sample(hostile, runs(40));
    const all = hosts.map((host) => ({ command: fillCommand(template), replica: { host } }));
    expect(runAll(all, shell, tmpdir()).map(({ text }) => text)).toEqual(hosts.map(expected));
  });
});

test.each([
  ['echo "a {name} b"', 'in double quotes: write $GATEWAY_REPLICA_NAME or $1'],
  ["echo 'a {host} b'", "in single quotes: end them before it, as in 'a '{host}' b'"],
  ['echo "$(f {name})"', 'in a substitution: write "$GATEWAY_REPLICA_NAME" or "$1"'],
  ['echo $(f {name})', 'in a substitution'],
  ['echo $(f "{name}")', 'in double quotes'],
  ['echo $(f (g {name}))', 'in a substitution'],
  ['echo `f {port}`', 'in a substitution: write "$GATEWAY_REPLICA_PORT" or "$3"'],
  ['echo "`f {name}`"', 'in a substitution'],
  ['cat <<EOF\n{url}\nEOF', 'in or behind a here-document: write "$GATEWAY_REPLICA_URL" or "$4"'],
  ["cat <<'EOF'\nx\nEOF\necho {name}", 'in or behind a here-document'],
  ["true # it's {name}", 'in a comment: leave it out'],
  ['#{name}', 'in a comment'],
  ['true;# {name}', 'in a comment'],
  [`echo ${OPEN}x:-{name}}`, 'where the gateway cannot tell how the shell reads it: write'],
  [`echo ${OPEN}x:-'} {name}`, 'where the gateway cannot tell'],
  ["echo $'a\\'b' {name}", 'where the gateway cannot tell'],
  ['echo `date` {name}', 'where the gateway cannot tell'],
  ['echo $(( 1 + {port} ))', 'where the gateway cannot tell'],
  ['(( x = {port} ))', 'where the gateway cannot tell'],
  ['diff <(f {name}) x', 'where the gateway cannot tell'],
  ['echo $(case x in x) f;; esac) {name}', 'where the gateway cannot tell'],
  ["echo $(f # it's\n) {name}", 'where the gateway cannot tell'],
  ['cat <\\\n<EOF\n{name}\nEOF', 'where the gateway cannot tell'],
])('%j is refused, with how to write it', (template, problem) => {
  expect(() => fillCommand(template)).toThrow(UsageError);
  expect(() => fillCommand(template)).toThrow(problem);
});

test('a placeholder is accepted only where quoting it changes nothing, and no value is ever run as code', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-exec-'));
  const canary = join(folder.path, 'canary');
  const host = `$(>canary)\`>canary\`";>canary;'>canary;#\\`;
  // It shows where a word ends, and an echo would read escapes, which a process id can be the end of.
  const PRINT = 'printf _%s ';
  const pieces = fc.constantFrom(
    ...[
      '{host}',
      '{host}',
      '{host}',
      PRINT,
      'a',
      ' ',
      '\n',
      ';',
      '"',
      '"',
      "'",
      "'",
      '\\',
      '`',
      '$(',
      ')',
      '(',
    ],
    ...[
      OPEN,
      `${OPEN}x}`,
      '}',
      '$',
      '#',
      " # it's ",
      '<<E\n',
      '\nE\n',
      "$'",
      '$((',
      '))',
      'case x in x) ',
      ';; esac\n',
    ],
    ...[
      '\\\n',
      '&&',
      '|',
      '$#',
      '$$',
      '{',
      'f() { ',
      '; }',
      '"$(',
      ')"',
      '=',
      '<(',
      '((',
      '\\"',
      "\\'",
      '$"',
    ],
  );
  const template = fc.array(pieces, { minLength: 1, maxLength: 12 }).map((found) => PRINT + found.join(''));
  // What runs in the background prints whenever it likes, also into the output of the next command.
  const isInBackground = (text: string) => /(?<!\\)(?:\\\\)*\\&&/.test(text);
  // `x=y` is an assignment and `"x"=y` a command, which does not exist.
  const mayAssign = /\{host\}[^\s;|&()<>]*=/;
  const isAccepted = (text: string) => {
    if (isInBackground(text) || mayAssign.test(text)) return false;
    try {
      return fillCommand(text) !== text;
    } catch {
      return false;
    }
  };
  const templates = fc.sample(template.filter(isAccepted), runs(150));
  for (const shell of SHELLS) {
    const filled = templates.map((text) => ({ command: fillCommand(text), replica: { host } }));
    runAll(filled, shell, folder.path);
    expect(existsSync(canary)).toBe(false);
    const quoted = templates.flatMap((text) =>
      ['va1', "'va1'", '"va1"'].map((word) => ({
        command: fillCommand(text).replaceAll('"$GATEWAY_REPLICA_HOST"', () => word),
      })),
    );
    const outputs = runAll(quoted, shell, folder.path).map(
      ({ text, status }) => `${status} ${text.replaceAll(/\d{2,}/g, 'PID')}`,
    );
    for (const [index, text] of templates.entries()) {
      const [bare, ...others] = outputs.slice(index * 3, index * 3 + 3);
      expect([text, ...others]).toEqual([text, bare, bare]);
    }
  }
});

test('what programs take for an option, holds control characters, or is no URL, is no value', () => {
  for (const host of ['-oProxyCommand=x', 'a\nb', '\u0000']) {
    expect(findUnfitFact({ ...REPLICA, host })).toContain('its host cannot be part of a command');
  }
  expect(findUnfitFact({ ...REPLICA, url: 'x' })).toContain('its url cannot be part of a command');
  expect(findUnfitFact(REPLICA)).toBeNull();
});

test('a placeholder that does not exist is refused, and braces of the shell and of other programs are left alone', () => {
  expect(() => fillCommand('ssh {hots}')).toThrow('{hots}: there are {name}, {host}, {port}, {url}');
  const ofOthers = ['name=x; printf %s "$', "{name}\" | awk '{print}'"].join('');
  expect(run(ofOthers)).toBe('x\n');
  expect(run('echo \\{name}')).toBe('{name}\n');
});
