import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { StartError } from '#base';
import { type Invocation, UsageError } from '#cli/command';
import { simulate } from '../../../src/cli/serve/simulate.ts';
import { invoke as run } from '../invoke.ts';
import { REPLICA, startAdmin, TOKEN } from '../scripted-admin.ts';

function invoke(args: readonly string[]): { invocation: Invocation; stdout: PassThrough; stop: () => void } {
  const stdout = new PassThrough({ encoding: 'utf8' });
  const stopping = new AbortController();
  const signals = {
    shutdown: stopping.signal,
    onHangup: () => {},
    onCrash: () => {},
    sendToGroup: () => false,
  };
  const streams = { stdin: Readable.from([]), stdout, stderr: new PassThrough() };
  const invocation = { args, env: {}, nodeVersion: '26.0.0', pid: process.pid, ...streams, signals };
  return { invocation, stdout, stop: () => stopping.abort() };
}

describe('gateway simulate', () => {
  it('prints in one line what it serves and where, and serves until it is stopped', async () => {
    const { invocation, stdout, stop } = invoke([
      '--name',
      'gpu-1',
      '--model',
      'a',
      '--model',
      'b',
      '--ttft',
      '0ms',
    ]);
    const exit = simulate(invocation);
    const [line] = await once(stdout, 'data');
    const url = /^Replica gpu-1 \(simulated vllm\) serves a, b on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(
      line,
    )?.[1];
    expect(await (await fetch(`${url}/v1/models`)).json()).toMatchObject({
      data: [{ id: 'a' }, { id: 'b' }],
    });
    stop();
    expect(await exit).toBe(0);
    await expect(fetch(`${url}/health`)).rejects.toThrow();
  });

  it('simulates the given engine', async () => {
    const { invocation, stdout, stop } = invoke(['--engine', 'llamacpp']);
    const exit = simulate(invocation);
    const [line] = await once(stdout, 'data');
    const response = await fetch(`${/http:\S+/.exec(line)?.[0]}/v1/models`);
    expect(await response.json()).toMatchObject({ data: [{ owned_by: 'llamacpp' }] });
    stop();
    await exit;
  });

  it('says in one line that a port is in use', async () => {
    const first = invoke([]);
    const exit = simulate(first.invocation);
    const [line] = await once(first.stdout, 'data');
    const port = /:(\d+)\n$/.exec(line)?.[1] ?? '';
    const second = simulate(invoke(['--port', port]).invocation);
    const problem = second.catch((error: unknown) => error);
    expect(await problem).toBeInstanceOf(StartError);
    expect(await problem).toHaveProperty(
      'message',
      expect.stringMatching(
        new RegExp(`^cannot listen on 127\\.0\\.0\\.1:${port}: the port is already in use.*`),
      ),
    );
    first.stop();
    await exit;
  });

  it('lets a running replica play a scene, found by its URL or by its name in a gateway', async () => {
    const { invocation, stdout, stop } = invoke(['--name', 'gpu-1']);
    const exit = simulate(invocation);
    const [line] = await once(stdout, 'data');
    const url = /http:\S+/.exec(line)?.[0] ?? '';
    const scene = async (...args: readonly string[]) => {
      const { exitCode, stdout, stderr } = await run(['simulate', 'scene', ...args], TOKEN);
      return { exitCode, text: stdout + stderr };
    };
    expect(await scene('failing', url)).toEqual({
      exitCode: 0,
      text: 'gpu-1 is failing now: it answers with 500, cuts its streams, or ends them with an error\n',
    });
    const chat = () => fetch(`${url}/v1/chat/completions`, { method: 'POST', body: '{"messages":[]}' });
    const admin = await startAdmin(() => ({ body: { replica: { ...REPLICA, url } } }));
    expect(await scene('loading', 'gpu-1', '--admin', admin.url)).toMatchObject({ exitCode: 0 });
    expect(admin.calls).toEqual(['GET /admin/replicas/gpu-1 Bearer token-1']);
    expect((await chat()).status).toBe(503);
    expect(await scene('failing', admin.url)).toEqual({
      exitCode: 1,
      text: `gateway: ${admin.url} is no simulated replica\n`,
    });
    expect(await scene('asleep', url)).toMatchObject({
      exitCode: 2,
      text: expect.stringContaining('the scene must be one of normal, slow, failing, frozen, loading'),
    });
    expect(await scene('slow', url, '--ttft', '5s')).toMatchObject({
      exitCode: 2,
      text: expect.stringContaining("option '--ttft' does not go with scene"),
    });
    expect(await scene('slow')).toMatchObject({
      exitCode: 2,
      text: expect.stringContaining('REPLICA is missing'),
    });
    stop();
    await exit;
    expect(await scene('slow', url)).toEqual({ exitCode: 1, text: `gateway: cannot reach ${url}\n` });
  });

  it('refuses options that only name a gateway, where it asks none', async () => {
    const { invocation } = invoke(['--admin', 'http://127.0.0.1:9']);
    await expect(simulate(invocation)).rejects.toThrow("option '--admin' only goes with scene");
  });

  it.each([
    ['--port', '65536', '--port must be a port from 0 to 65535'],
    ['--ttft', 'soon', '--ttft must be a duration such as 80ms or 1.5s'],
    ['--tokens', '0', '--tokens must be an integer from 1 to 1000000'],
    ['--error-rate', '1.5', '--error-rate must be a number from 0 to 1'],
    ['--engine', 'abacus', '--engine must be one of vllm, llamacpp, openai'],
    ['--speed', '1', "unknown option '--speed' (did you mean '--seed'?)"],
  ])('refuses %s %s', async (option, value, message) => {
    await expect(simulate(invoke([option, value]).invocation)).rejects.toThrow(new UsageError(message));
  });
});
