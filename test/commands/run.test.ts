import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { invoke } from './invoke.ts';

async function writeConfig(text: string): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'spangate-run-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const path = join(directory, 'gateway.yaml');
  await writeFile(path, text);
  return path;
}

const VALID = 'replicas:\n  - { name: a, url: "http://a:8000", api_key: sk-secret }\n';

describe('a wrong command line ends with one line, a pointer to the help, and exit code 2', () => {
  it.each<[string, string[], string]>([
    ['nothing at all', [], 'no configuration: give -config FILE or set SVC_CONFIG'],
    ['check without a file', ['check'], 'no configuration: give -config FILE or set SVC_CONFIG'],
    ['an unknown command', ['serv'], 'unknown command "serv"'],
    ["an object's own method as command", ['constructor'], 'unknown command "constructor"'],
    ['an unknown option', ['--colour'], "Unknown option '--colour'"],
    ['an option without its value', ['-config'], "Option '--config <value>' argument missing"],
    ['an option with an empty value', ['-config='], "option '--config' needs a path"],
    ['an argument too many', ['-config', 'f', 'g'], 'unexpected argument "g"'],
    ['a drain without a name', ['drain', '--admin', 'http://a'], 'NAME is missing'],
    ['an option that no version knows', ['drain', 'a', '--hard'], "Unknown option '--hard'"],
    ['a time-out without a wait', ['drain', 'a', '--timeout', '1m'], "option '--timeout' needs '--wait'"],
    [
      'a time-out that is no duration',
      ['drain', 'a', '--wait', '--timeout', '90'],
      "option '--timeout' needs a duration such as 30s or 10m",
    ],
    [
      'an interval of nothing',
      ['top', '--interval', '0s'],
      "option '--interval' needs a duration such as 500ms or 2s",
    ],
    [
      'a gateway that is not named',
      ['stats'],
      'no gateway: give --admin URL or -config FILE, or set SVC_CONFIG',
    ],
    ['no URL', ['stats', '--admin', 'localhost:1'], "option '--admin' needs an http:// or https:// URL"],
    [
      'no token',
      ['stats', '--admin', 'http://a'],
      'SVC_ADMIN_TOKEN is not set: it holds the token of the admin API',
    ],
  ])('%s', async (_, args, message) => {
    const stderr = `gateway: ${message}\nTry 'gateway --help'.\n`;
    expect(await invoke(args)).toEqual({ exitCode: 2, stdout: '', stderr });
  });

  it('an empty SVC_CONFIG is none', async () => {
    expect(await invoke([], { SVC_CONFIG: '' })).toMatchObject({ exitCode: 2 });
  });
});

describe('help and version', () => {
  it.each([[['--help']], [['-h']], [['help']], [['drain', '--help']]])(
    '%j prints the usage',
    async (args) => {
      const { exitCode, stdout } = await invoke(args);
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(/^Usage: gateway -config FILE /);
    },
  );

  it('a command with options of its own explains them itself', async () => {
    expect((await invoke(['simulate', '--help'])).stdout).toMatch(/^Usage: gateway simulate /);
  });

  it('the version is that of the package', async () => {
    const { stdout } = await invoke(['--version']);
    expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });
});

describe('gateway check', () => {
  it.each([
    ['-config F', (path: string) => ['check', '-config', path]],
    ['--config F', (path: string) => ['check', '--config', path]],
    ['-config=F', (path: string) => ['check', `-config=${path}`]],
    ['--config=F', (path: string) => ['check', `--config=${path}`]],
  ])('finds its file by %s', async (_, argsFor) => {
    const { exitCode, stdout } = await invoke(argsFor(await writeConfig(VALID)));
    expect(exitCode).toBe(0);
    expect(stdout).toContain('  - name: a\n    url: http://a:8000\n    host: a\n');
  });

  it('finds its file by SVC_CONFIG, and -config wins over it', async () => {
    const path = await writeConfig(VALID);
    expect(await invoke(['check'], { SVC_CONFIG: path })).toMatchObject({ exitCode: 0 });
    expect(await invoke(['check', '-config', path], { SVC_CONFIG: '/nowhere' })).toMatchObject({
      exitCode: 0,
    });
  });

  it('prints every default and masks what is secret', async () => {
    const { stdout } = await invoke(['check', '-config', await writeConfig(VALID)]);
    expect(stdout).toContain('queue_size: 16384');
    expect(stdout).toContain('api_key: "***"');
    expect(stdout).not.toContain('sk-secret');
  });

  it('tells everything wrong with a file at once, with its lines, and ends with 2', async () => {
    const path = await writeConfig(`${VALID}colour: red\nlog: { level: loud }\n`);
    expect(await invoke(['check', '-config', path])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        `${path}:3: colour: unknown key\n` +
        `${path}:4: log.level: found "loud", expected fatal, error, warn, info, debug, trace or silent\n`,
    });
  });

  it('says in one line that there is no such file, and ends with 1', async () => {
    expect(await invoke(['check', '-config', '/nowhere/gateway.yaml'])).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'gateway: cannot read the configuration file /nowhere/gateway.yaml: there is no such file\n',
    });
  });
});
