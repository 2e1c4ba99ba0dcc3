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
