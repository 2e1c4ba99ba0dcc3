import { createInterface } from 'node:readline';
import { describe, expect, it, onTestFinished, test } from 'vitest';
import { COMPLETION } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { chat, serve, spawnMain, startReplica, writeConfig } from '#testkit/processes/main-process.ts';

/** A replica that holds its next request until it is released. */
async function startHoldingReplica() {
  const replica = await startReplica();
  const gate = createGate();
  replica.answerOnce(gate.script);
  return { replica, release: gate.open };
}

describe('a gateway that serves', () => {
  it.each([
    ['SIGTERM', 1],
    ['SIGINT', 1],
    ['SIGTERM', 2],
    ['SIGINT', 2],
  ] as const)('finishes its requests after %s and exits with 0, with %i workers', async (signal, workers) => {
    const { replica, release } = await startHoldingReplica();
    const { child, url, untilLogged, closed, stderr } = await serve(replica, { workers });
    const answer = chat(url);
    await replica.nextRequest();
    child.kill(signal);
    await untilLogged('shutting down');
    release();
    expect(await (await answer).json()).toEqual(COMPLETION);
    expect(await closed).toEqual({ code: 0, signal: null });
    expect(await untilLogged('stopped')).toMatchObject({ cutRequests: 0, undeliveredRecords: 0 });
    expect(await stderr).toBe('');
  });

  it('treats two signals at once as one: process groups and npm deliver a signal twice', async () => {
    const { replica, release } = await startHoldingReplica();
    const { child, url, untilLogged, closed } = await serve(replica);
    const answer = chat(url);
    await replica.nextRequest();
    child.kill('SIGINT');
    child.kill('SIGTERM');
    await untilLogged('shutting down');
    release();
    expect((await answer).status).toBe(200);
    expect(await closed).toEqual({ code: 0, signal: null });
  });

  it('ends at once when the operator repeats the signal', async () => {
    const { replica } = await startHoldingReplica();
    const { child, url, closed } = await serve(replica);
    const answer = chat(url).catch((error: unknown) => error);
    await replica.nextRequest();
    const insisting = setInterval(() => child.kill('SIGTERM'), 50);
    onTestFinished(() => clearInterval(insisting));
    expect(await closed).toEqual({ code: 1, signal: null });
    expect(await answer).toBeInstanceOf(Error);
  });
});

test('a gateway that still waits for its fleet stops at the first signal, and exits with 0', async () => {
  const nowhere = '127.0.0.1:9';
  const path = await writeConfig(`replicas: [{ name: a, url: "http://${nowhere}" }]
export: { to: file }
state: { redis: "redis://${nowhere}" }`);
  const { child, stdout, closed } = spawnMain(['-config', path]);
  const messages: unknown[] = [];
  for await (const line of createInterface(stdout)) {
    const { msg } = JSON.parse(line);
    messages.push(msg);
    if (msg === 'the start waits for the shared state') child.kill('SIGTERM');
  }
  expect(messages.at(-1)).toBe('stopped');
  expect(await closed).toEqual({ code: 0, signal: null });
});
