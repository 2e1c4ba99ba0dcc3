import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { createStubCommands, type StubCommands } from './stub-commands.ts';

const DEPLOY = join(import.meta.dirname, '../../deploy');

async function runScript(path: string, args: readonly string[], stubs: StubCommands, env: object = {}) {
  const child = spawn(join(DEPLOY, path), args, { env: { ...stubs.env, ...env } });
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  return { stdout, stderr, exitCode };
}

describe('deploy/rollout.sh', () => {
  const rollout = (args: readonly string[], stubs: StubCommands, env?: object) =>
    runScript('rollout.sh', args, stubs, env);

  test('drains, restarts and undrains one replica after the other', async () => {
    await using stubs = await createStubCommands({ gateway: '', restart: '' });
    const { exitCode, stdout } = await rollout(['a', 'b', '--', 'restart', '--fast'], stubs);
    expect(exitCode).toBe(0);
    expect(await stubs.calls()).toEqual([
      'gateway drain a --wait --timeout 10m --reason rollout --unless-last',
      'restart --fast a',
      'gateway undrain a --wait --timeout 2m',
      'gateway drain b --wait --timeout 10m --reason rollout --unless-last',
      'restart --fast b',
      'gateway undrain b --wait --timeout 2m',
    ]);
    expect(stdout).toMatch(/== done: a b\n$/);
  });

  test('asks every gateway that is named, before and after', async () => {
    await using stubs = await createStubCommands({ gateway: '', restart: '' });
    const admins = ['--admin', 'http://one:9090', '--admin', 'http://two:9090', '--timeout', '30s'];
    await rollout([...admins, 'a', '--', 'restart'], stubs);
    expect(await stubs.calls()).toEqual([
      'gateway drain a --wait --timeout 30s --reason rollout --unless-last --admin http://one:9090',
      'gateway drain a --wait --timeout 30s --reason rollout --unless-last --admin http://two:9090',
      'restart a',
      'gateway undrain a --wait --timeout 2m --admin http://one:9090',
      'gateway undrain a --wait --timeout 2m --admin http://two:9090',
    ]);
  });

  test('touches no replica that one of the gateways does not call safe to stop', async () => {
    await using stubs = await createStubCommands({
      gateway: 'case "$*" in *two*) exit 1;; esac',
      restart: '',
    });
    const admins = ['--admin', 'http://one:9090', '--admin', 'http://two:9090'];
    const { exitCode, stderr } = await rollout([...admins, 'a', 'b', '--', 'restart'], stubs);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('a is not safe to stop; nothing was done to it');
    expect((await stubs.calls()).map((call) => call.split(' ')[0])).toEqual(['gateway', 'gateway']);
  });

  test('leaves a replica drained that did not come back, and the others alone', async () => {
    await using stubs = await createStubCommands({ gateway: '', restart: 'exit 3' });
    const { exitCode, stderr } = await rollout(['a', 'b', '--', 'restart'], stubs);
    expect(exitCode).toBe(1);
    expect(stderr).toContain('a did not come back and stays drained. Once it serves: gateway undrain a');
    expect(await stubs.calls()).toHaveLength(2);
  });

  test('says when a replica does not come back after its undrain, and leaves the others alone', async () => {
    await using stubs = await createStubCommands({ gateway: '[ "$1" = drain ]', restart: '' });
    const { exitCode, stderr } = await rollout(['a', 'b', '--', 'restart'], stubs);
    expect([exitCode, stderr]).toEqual([
      1,
      expect.stringContaining('a was restarted, but is not back: gateway undrain a --wait'),
    ]);
  });

  test('asks nobody whether another replica answers with --force', async () => {
    await using stubs = await createStubCommands({ gateway: '', restart: '' });
    const { exitCode } = await rollout(['--force', 'a', '--', 'restart'], stubs);
    expect([exitCode, (await stubs.calls())[0]]).toEqual([
      0,
      'gateway drain a --wait --timeout 10m --reason rollout --force',
    ]);
  });

  test.each([
    [[], 'no replica is named'],
    [['a'], 'no command follows --'],
    [['--', 'restart'], 'no replica is named'],
    [['--admin'], '--admin needs a URL'],
    [['--fast', 'a', '--', 'restart'], 'unknown option --fast'],
  ])('refuses %j', async (args, message) => {
    await using stubs = await createStubCommands({ gateway: '', restart: '' });
    const { exitCode, stderr } = await rollout(args, stubs);
    expect([exitCode, stderr]).toEqual([2, `rollout.sh: ${message} (--help explains)\n`]);
    expect(await stubs.calls()).toEqual([]);
  });

  test('explains itself', async () => {
    await using stubs = await createStubCommands({});
    const { stdout } = await rollout(['--help'], stubs);
    expect(stdout).toMatch(/^Restarts replicas one at a time[\s\S]+GATEWAY is the command to call.*\n$/);
  });
});

describe('deploy/kubernetes/restart-pod.sh', () => {
  const restartPod = (stubs: StubCommands, env?: object) =>
    runScript('kubernetes/restart-pod.sh', ['vllm-1'], stubs, env);

  /** A pod that is gone for two looks after it was deleted, and then has a successor. */
  const KUBECTL = `
    calls=$(grep -c 'get pod' "$(dirname "$0")/calls.log")
    case "$*" in
      *'get pod'*)
        [ "$calls" -eq 1 ] && echo uid-1 && exit 0
        [ "$calls" -le 3 ] && exit 1
        echo uid-2 ;;
      *wait*) exit "\${WAIT_EXIT:-0}" ;;
    esac`;

  test('deletes the pod, and waits until its successor is ready', async () => {
    await using stubs = await createStubCommands({ kubectl: KUBECTL, sleep: '' });
    const { exitCode } = await restartPod(stubs, { NAMESPACE: 'inference', READY_TIMEOUT: '5m' });
    const calls = await stubs.calls();
    expect(exitCode).toBe(0);
    expect(calls[1]).toBe('kubectl --namespace inference delete pod vllm-1 --wait=true');
    expect(calls.filter((call) => call.startsWith('sleep'))).toHaveLength(2);
    expect(calls.at(-1)).toBe(
      'kubectl --namespace inference wait pod vllm-1 --for=condition=Ready --timeout=5m',
    );
  });

  test('fails when the successor does not get ready', async () => {
    await using stubs = await createStubCommands({ kubectl: KUBECTL, sleep: '' });
    expect((await restartPod(stubs, { WAIT_EXIT: '1' })).exitCode).toBe(1);
  });

  test('deletes nothing when there is no such pod', async () => {
    await using stubs = await createStubCommands({ kubectl: 'exit 1', sleep: '' });
    expect((await restartPod(stubs)).exitCode).toBe(1);
    expect(await stubs.calls()).toHaveLength(1);
  });
});
