import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isCommandName } from '#cli/arguments';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { invoke } from './invoke.ts';
import { startAdmin } from './scripted-admin.ts';

async function writeConfig(text: string): Promise<string> {
  const directory = await temporaryFolder();
  const path = join(directory, 'gateway.yaml');
  await writeFile(path, text);
  return path;
}

const VALID = 'replicas:\n  - { name: a, url: "http://a:8000", api_key: sk-secret }\n';
/** What check says of a configuration with no health checks. */
const OFF =
  'gateway: notice: health checks are off: a replica that fails still gets its share of the requests. To turn them on, add the line "health: {}"\n';

describe('a wrong command line ends with one line, a pointer to the help, and exit code 2', () => {
  it.each<[string, string[], string]>([
    ['nothing at all', [], 'no configuration: give -config FILE or set SVC_CONFIG'],
    ['serve without a file', ['serve'], 'no configuration: give -config FILE or set SVC_CONFIG'],
    ['check without a file', ['check'], 'no configuration: give -config FILE or set SVC_CONFIG'],
    ['an unknown command', ['frobnicate'], 'unknown command "frobnicate"'],
    ['a mistyped command', ['drian', 'a'], 'unknown command "drian" (did you mean "drain"?)'],
    ['a command that is not typed to its end', ['undr'], 'unknown command "undr" (did you mean "undrain"?)'],
    ["an object's own method as command", ['constructor'], 'unknown command "constructor"'],
    ['an unknown option', ['--colour'], "unknown option '--colour'"],
    ['a mistyped option', ['drain', 'a', '--wiat'], "unknown option '--wiat' (did you mean '--wait'?)"],
    [
      'an option without its value',
      ['key', 'create', 'a', '--max-inflight', '-1'],
      "option '--max-inflight' needs a value; one that begins with '-' as '--max-inflight=-…'",
    ],
    [
      'two gateways for a command that asks one',
      ['drain', 'a', '--admin', 'http://gw-1', '--admin', 'http://gw-2'],
      "option '--admin' is given twice: this command takes one",
    ],
    ['a mistyped help', ['--hepl'], "unknown option '--hepl' (did you mean '--help'?)"],
    ["an object's own method as option", ['stats', '--constructor'], "unknown option '--constructor'"],
    ['an option without its value', ['-config'], "Option '-c, --config <value>' argument missing"],
    ['an option with an empty value', ['-config='], "option '--config' needs a path"],
    ['an argument too many', ['-config', 'f', 'g'], 'unexpected argument "g"'],
    ['a drain without a name', ['drain', '--admin', 'http://a'], 'NAME is missing'],
    ['an option that no version knows', ['drain', 'a', '--hard'], "unknown option '--hard'"],
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
      'SVC_READ_TOKEN is not set: it holds the token of the admin API that this command needs',
    ],
    [
      'a view that there is not',
      ['top', '--by', 'host'],
      "option '--by' must be one of replica, model, tenant",
    ],
    [
      'an order that there is not',
      ['top', '--sort', 'age'],
      "option '--sort' must be one of inflight, errors, requests, latency, name",
    ],
    [
      'a status that there is not',
      ['records', '--status', '6xx'],
      "option '--status' needs a status such as 429, or a class such as 5xx",
    ],
    ['too many records', ['records', '-n', '501'], "option '--limit' needs a whole number from 1 to 500"],
    ['an interval that nobody uses', ['records', '--interval', '1s'], "option '--interval' needs '--follow'"],
    ['a shell that is not known', ['completion', 'tcsh'], 'SHELL must be one of bash, zsh, fish'],
    ['help for two commands', ['help', 'drain', 'stats'], 'unexpected argument "stats"'],
    ['help for no command', ['help', 'dran'], 'unknown command "dran" (did you mean "drain"?)'],
  ])('%s', async (_, args, message) => {
    const [name = '--help'] = args;
    const hint = isCommandName(name) ? `help ${name}` : '--help';
    const stderr = `gateway: ${message}\nTry 'gateway ${hint}'.\n`;
    expect(await invoke(args)).toEqual({ exitCode: 2, stdout: '', stderr });
  });

  it('an empty SVC_CONFIG is none', async () => {
    expect(await invoke([], { SVC_CONFIG: '' })).toMatchObject({ exitCode: 2 });
  });
});

describe('the token of a command', () => {
  it('may be the read-only one if the command only reads', async () => {
    const { url, calls } = await startAdmin(() => ({ body: { exported: 0 } }));
    const env = { SVC_READ_TOKEN: 'read-token-of-the-test' };
    expect(await invoke(['stats', '--admin', url], env)).toMatchObject({ exitCode: 0 });
    expect(calls).toEqual(['GET /admin/stats Bearer read-token-of-the-test']);
    for (const [variable, ...command] of [
      ['SVC_OPERATOR_TOKEN', 'drain', 'a'],
      ['SVC_OPERATOR_TOKEN', 'undrain', 'a'],
      ['SVC_ADMIN_TOKEN', 'forget', 'a'],
      ['SVC_ADMIN_TOKEN', 'reload'],
    ]) {
      expect(await invoke([...command, '--admin', url], env)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(
          `gateway: ${variable} is not set, and the token in SVC_READ_TOKEN only reads\n`,
        ),
      });
    }
    expect(calls).toHaveLength(1);
  });

  it('may be the operator one if the command only reads, drains or undrains', async () => {
    const { url, calls } = await startAdmin(() => ({ body: {} }));
    const env = {
      SVC_OPERATOR_TOKEN: 'operator-token-of-the-test',
      SVC_READ_TOKEN: 'read-token-of-the-test',
    };
    for (const command of [['stats'], ['drain', 'a', '--force'], ['undrain', 'a']]) {
      await invoke([...command, '--admin', url], env);
    }
    expect(calls).toEqual([
      'GET /admin/stats Bearer operator-token-of-the-test',
      'POST /admin/replicas/a/drain Bearer operator-token-of-the-test',
      'POST /admin/replicas/a/undrain Bearer operator-token-of-the-test',
    ]);
    for (const command of [['forget', 'a'], ['reload']]) {
      expect(await invoke([...command, '--admin', url], env)).toMatchObject({
        exitCode: 2,
        stderr: expect.stringContaining(
          'the token in SVC_OPERATOR_TOKEN only reads, and steers replicas, shadows and rollouts\n',
        ),
      });
    }
  });

  it('may be in a file, and is the admin token if both are set', async () => {
    const { url, calls } = await startAdmin(() => ({ body: { exported: 0 } }));
    const env = {
      SVC_ADMIN_TOKEN_FILE: await writeConfig('admin-token-of-the-test\n'),
      SVC_READ_TOKEN: 'read-token-of-the-test',
    };
    expect(await invoke(['stats', '--admin', url], env)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(calls).toEqual(['GET /admin/stats Bearer admin-token-of-the-test']);
  });

  it('is refused with one line if its file is not there', async () => {
    const env = { SVC_ADMIN_TOKEN_FILE: '/nowhere/token' };
    expect(await invoke(['stats', '--admin', 'http://a'], env)).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'gateway: the file that SVC_ADMIN_TOKEN_FILE names cannot be read: there is no such file\n',
    });
  });
});

describe('gateway check', () => {
  it.each([
    ['-config F', (path: string) => ['check', '-config', path]],
    ['--config F', (path: string) => ['check', '--config', path]],
    ['-config=F', (path: string) => ['check', `-config=${path}`]],
    ['--config=F', (path: string) => ['check', `--config=${path}`]],
    ['-c F', (path: string) => ['check', '-c', path]],
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

  it.each([
    ['health: {}\n', ''],
    ['health: { passive: false, active: false }\n', ''], // silence still counts
    ['', OFF],
    ['health: { passive: false, active: false, frozen_after: off }\n', OFF],
    ['health: { passive: false, active: false, frozen_after: off, peers: {} }\n', ''],
  ])('says when health checks are off, with the line to add, and ends with 0: %j', async (lines, notice) => {
    const { exitCode, stdout, stderr } = await invoke(['check', '-config', await writeConfig(VALID + lines)]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: notice });
    expect(stdout).not.toContain('notice');
  });

  it.each([
    ['{ gpu_count: 1 }', '{ gpu_count: 1 }', ''],
    ['{ gpu_count: 1, gpu_hour_price: 0 }', '{ gpu_count: 1, gpu_hour_price: 2.5 }', ''],
    ['{ gpu_count: 1, gpu_model: H100 }', '{ gpu_count: 1, gpu_hour_price: "2.5" }', ''],
    ['{ gpu_count: 1 }', '{ gpu_count: 1, gpu_hour_price: 2.5 }', 'replica a has no gpu_hour_price'],
    ['{ gpu_model: toString }', '{ gpu_model: L4 }', 'replica a and 1 more have no gpu_hour_price'],
    [
      '{ gpu_model: H100 }',
      '{ gpu_count: 1, gpu_hour_price: 2 }',
      'replica a has a gpu_hour_price and no gpu_count',
    ],
  ])('says which replicas have no price where others have one: a %s, b %s', async (a, b, notice) => {
    const prices =
      notice === '' && !`${a}${b}`.includes('gpu_hour_price') ? '' : 'gpu_hour_price: { H100: 2.49 }\n';
    const toReplica = (name: string, keys: string) =>
      `  - { name: ${name}, url: "http://${name}", ${keys.slice(1, -1)} }\n`;
    const text = `health: {}\n${prices}replicas:\n${toReplica('a', a)}${toReplica('b', b)}`;
    const { exitCode, stderr } = await invoke(['check', '-config', await writeConfig(text)]);
    const line = `gateway: notice: ${notice}: what requests cost there is in no sum\n`;
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: notice === '' ? '' : line });
  });

  it('tells everything wrong with a file at once, with its lines, and ends with 2', async () => {
    const path = await writeConfig(`${VALID}colour: red\nlog: { level: loud }\n`);
    expect(await invoke(['check', '-config', path])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(
        `^${path}:3: colour: unknown key, expected one of gateway, .*, or a key of your own that begins with x-\n` +
          `${path}:4: log.level: found "loud", expected fatal, error, warn, info, debug, trace or silent\n$`,
      ),
    });
  });

  it('reads the file of clients, and ends with 2 if that is wrong', async () => {
    const clients = await writeConfig('{"name":"a","key_sha256":"sk-of-the-test"}');
    const path = await writeConfig(`${VALID}clients_file: ${clients}\n`);
    const { exitCode, stdout, stderr } = await invoke(['check', '-config', path]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: '' });
    expect(stderr).toContain(
      `gateway: clients_file: ${clients}:1: key_sha256: found ***, expected the SHA-256`,
    );
  });

  it('says in one line that there is no such file, and ends with 2', async () => {
    expect(await invoke(['check', '-config', '/nowhere/gateway.yaml'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr: 'gateway: cannot read the configuration file /nowhere/gateway.yaml: there is no such file\n',
    });
  });
});
