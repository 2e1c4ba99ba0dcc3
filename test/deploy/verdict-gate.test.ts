import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { startFakeReplicas } from '#testkit/fake-replica.ts';
import { ADMIN_TOKEN, startGateway } from '#testkit/start-gateway.ts';
import { startAdmin } from '../cli/scripted-admin.ts';

const SCRIPT = join(import.meta.dirname, '../../deploy/recipes/verdict-gate.sh');

/** Runs the script with a real shell and a real curl. */
async function runGate(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = spawn('/bin/sh', [SCRIPT, ...args], {
    env: { PATH: process.env.PATH ?? '', SVC_READ_TOKEN: 'token-1', INTERVAL: '0.1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { stdout, stderr, exitCode };
}

test.each([
  ['good', 0],
  ['bad', 3],
])('the exit code is that of the verdict, once there is one: %s %i', async (verdict, exitCode) => {
  let count = 0;
  const nothing = { error: { message: 'No replica is that.', code: 'selector_matches_nothing' } };
  const { url, calls } = await startAdmin(() => {
    count++;
    // Pods that have just been made are no replicas yet.
    if (count === 1) return { status: 404, body: nothing };
    // A gateway that restarts does not answer for a moment.
    if (count === 3) return null;
    return { body: { verdict: count < 5 ? 'undecided' : verdict, sentence: 'is "good" or "bad"' } };
  });
  const gate = await runGate(['pod.label/version=v2', 'a,b'], { GATEWAY_ADMIN: url });
  expect(gate.exitCode).toBe(exitCode);
  expect(gate.stdout.trim().split('\n')).toHaveLength(3);
  expect(calls).toHaveLength(5);
  expect(new Set(calls).size).toBe(1);
  expect(calls[0]).toMatch(
    /^GET \/admin\/verdict\?since=\d{4}-\d\d-\d\dT\d\d%3[Aa]\d\d%3[Aa]\d\dZ&candidate=pod.label%2[Ff]version%3[Dd]v2&baseline=a%2[Cc]b Bearer token-1$/,
  );
});

test('without a verdict in time it ends with 4, without an answer with 1, and a refusal ends it at once', async () => {
  const late = await startAdmin(() => ({ body: { verdict: 'undecided' } }));
  expect(await runGate(['a'], { GATEWAY_ADMIN: late.url, TIMEOUT: '0' })).toMatchObject({ exitCode: 4 });
  expect(await runGate(['a'], { GATEWAY_ADMIN: 'http://127.0.0.1:9', TIMEOUT: '0' })).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('127.0.0.1'),
  });
  expect(await runGate([], {})).toMatchObject({ exitCode: 2 });
  expect(await runGate(['a'], { SVC_READ_TOKEN: '' })).toMatchObject({ exitCode: 2 });
});

test('a real gateway answers it, and its refusals are shown', async () => {
  await using replicas = await startFakeReplicas('a', 'b');
  await using gateway = await startGateway({ replicas: [...replicas] });
  const env = { GATEWAY_ADMIN: gateway.adminUrl, SVC_READ_TOKEN: ADMIN_TOKEN, TIMEOUT: '0' };
  const undecided = await runGate(['a', 'b'], env);
  expect(undecided).toMatchObject({ exitCode: 4, stderr: '' });
  expect(JSON.parse(undecided.stdout)).toMatchObject({ verdict: 'undecided', candidate: ['a'] });
  const refused = await runGate(['x; touch /tmp/evil', 'b'], env);
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('"code":"invalid_request"') });
  expect(await runGate(['a'], { ...env, SVC_READ_TOKEN: 'wrong' })).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining('"code":"unauthorized"'),
  });
});
