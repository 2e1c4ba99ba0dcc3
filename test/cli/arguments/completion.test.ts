import { execFile, execFileSync } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { COMMAND_NAMES } from '../../../src/cli/arguments/command-table.ts';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

const MAIN = resolve(import.meta.dirname, '../../../src/main.ts');
const run = promisify(execFile);

/** The words that a shell gets for a command line; its last word is unfinished. */
async function complete(words: readonly string[], env = {}, shell = 'bash'): Promise<readonly string[]> {
  const { exitCode, stdout, stderr } = await invoke(['__complete', shell, '--', ...words], env);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout.split('\n').slice(0, -1);
}

describe('a shell is offered', () => {
  it('the commands', async () => {
    expect(await complete([''])).toEqual(COMMAND_NAMES);
    expect(await complete(['dr'])).toEqual(['drain']);
    expect(await complete(['help', 'und'])).toEqual(['undrain']);
    expect(await complete(['completion', ''])).toEqual(['bash', 'zsh', 'fish']);
  });

  it('the options that are left', async () => {
    expect(await complete(['stats', '-'])).toEqual([
      ...['--config', '--admin', '--ca', '--cert', '--key', '--json', '--help'],
    ]);
    expect(await complete(['stats', '--json', '-c', 'f', '--'])).toEqual([
      ...['--admin', '--ca', '--cert', '--key', '--help'],
    ]);
    expect(await complete(['-'])).toEqual(['--config', '--help', '--version']);
    expect(await complete(['simulate', '--model', 'a', '--mod'])).toEqual(['--model']);
  });

  it('the values of an option', async () => {
    expect(await complete(['top', '--by', ''])).toEqual(['replica', 'model', 'tenant']);
    expect(await complete(['top', '--sort', 'in'])).toEqual(['inflight']);
    // Bash takes what follows the = as a word of its own.
    expect(await complete(['top', '--sort=in'])).toEqual(['inflight']);
    expect(await complete(['top', '--sort=in'], {}, 'zsh')).toEqual(['--sort=inflight']);
  });

  it('what it means, if the shell can show it', async () => {
    const summary = 'send no new requests to a replica';
    expect(await complete(['dra'], {}, 'zsh')).toEqual([`drain:${summary}`]);
    expect(await complete(['dra'], {}, 'fish')).toEqual([`drain\t${summary}`]);
  });

  it('the replicas of the running gateway, but no name that a shell would interpret', async () => {
    const replicas = ['vllm-a', 'vllm-b', 'b', 'vllm-$(reboot)', 'vllm c', 'vllm;x'].map((name) => ({
      name,
    }));
    const { url, calls } = await startAdmin(() => ({ body: { replicas } }));
    const env = { SVC_READ_TOKEN: 'read-token-of-the-test' };
    expect(await complete(['drain', '--admin', url, ''], env)).toEqual(['vllm-a', 'vllm-b', 'b']);
    expect(await complete(['records', `--admin=${url}`, '--replica', 'v'], env)).toEqual([
      'vllm-a',
      'vllm-b',
    ]);
    expect(calls[0]).toBe('GET /admin/replicas Bearer read-token-of-the-test');
    expect(await complete(['drain', '--admin', url, 'vllm-a', ''], env)).toEqual([]);
    expect(calls).toHaveLength(2);
  });

  it('the gateways of the fleet', async () => {
    const { url } = await startAdmin(() => ({ body: { gateways: [{ name: 'gw-1' }] } }));
    expect(await complete(['forget', '--admin', url, ''], TOKEN)).toEqual(['gw-1']);
  });

  it('nothing where nothing can be known, and no error', async () => {
    expect(await complete(['drain', ''])).toEqual([]);
    expect(await complete(['drain', '--admin', 'nonsense', ''], TOKEN)).toEqual([]);
    expect(await complete(['drain', '-c', '/nowhere/gateway.yaml', ''], TOKEN)).toEqual([]);
    const { url } = await startAdmin(() => null);
    expect(await complete(['drain', '--admin', url, ''], TOKEN)).toEqual([]);
    expect(await complete(['constructor', '-'])).toEqual([]);
    expect(await complete(['stats', '--constructor=', ''])).toEqual([]);
    expect(await complete([])).toEqual(COMMAND_NAMES);
  });
});

const hasShell = (shell: string) => {
  try {
    execFileSync(shell, ['-c', ':']);
    return true;
  } catch {
    return false;
  }
};

describe('the script for', () => {
  let directory = '';
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'spangate-completion-'));
    const program = join(directory, 'gateway');
    await writeFile(program, `#!/bin/sh\nexec '${process.execPath}' '${MAIN}' "$@"\n`);
    await chmod(program, 0o755);
  });
  afterAll(() => rm(directory, { recursive: true }));

  /** Runs a program of this shell after the script, and `before` ahead of it. */
  async function inShell(
    shell: string,
    options: readonly string[],
    text: string,
    before = '',
  ): Promise<readonly string[]> {
    const script = (await invoke(['completion', shell])).stdout;
    const env = { PATH: `${directory}:${process.env.PATH}`, HOME: directory, ...TOKEN };
    const { stdout, stderr } = await run(shell, [...options, '-c', before + script + text], { env });
    expect(stderr).toBe('');
    return stdout.split('\n').slice(0, -1);
  }

  /** What bash's completion offers for this line. */
  const inBash = (line: string) =>
    inShell(
      'bash',
      ['--norc'],
      `COMP_LINE='${line}' COMP_POINT=\${#COMP_LINE}; _gateway gateway; printf '%s\\n' "\${COMPREPLY[@]}"; complete -p gateway`,
    );

  it('bash offers commands, options and replicas', async () => {
    const registered = 'complete -o default -F _gateway gateway';
    const { url } = await startAdmin(() => ({ body: { replicas: [{ name: 'vllm-a' }, { name: 'b' }] } }));
    const lines = ['gateway undr', 'NO_COLOR=1 gateway stats --js', 'gateway top --sort=lat'];
    expect(await Promise.all(lines.map(inBash))).toEqual([
      ['undrain', registered],
      ['--json', registered],
      ['latency', registered],
    ]);
    // It asks the gateway for a second, which may be too short on a busy machine.
    await expect.poll(() => inBash(`gateway drain --admin ${url} `)).toEqual(['vllm-a', 'b', registered]);
  });

  it.skipIf(!hasShell('fish'))('fish offers the same', async () => {
    const ask = (line: string) => inShell('fish', ['--no-config'], `complete -C '${line}'`);
    expect(await ask('gateway undr')).toEqual(['undrain\tsend requests to a replica again']);
    expect(await ask('gateway top --sort=lat')).toEqual(['--sort=latency']);
  });

  it.skipIf(!hasShell('zsh'))('zsh offers the same', async () => {
    // Without a line editor, the functions of zsh's completion are replaced by ones that print.
    const stubs = [
      'compdef() { registered="$*" }',
      `_describe() { print -l -- "\${(@P)@[-1]}" "$registered" }`,
      '_files() { print files }',
      '',
    ].join('\n');
    const ask = (...words: string[]) => {
      const typed = words.map((word) => `'${word}'`).join(' ');
      return inShell('zsh', ['-f'], `\nwords=(gateway ${typed}); CURRENT=$#words; _gateway\n`, stubs);
    };
    const registered = '_gateway gateway';
    expect(await ask('undr')).toEqual(['undrain:send requests to a replica again', registered]);
    expect(await ask('top', '--sort', 'lat')).toEqual(['latency', registered]);
    expect(await ask('check', '-c', '')).toEqual(['files']);
  });
});
