import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { startTcpServer } from '#testkit/servers/tcp-server.ts';
import { invoke } from '../invoke.ts';
import { startAdmin, TOKEN } from '../scripted-admin.ts';

describe('a failed call of the admin API ends the command with one line and exit code 1', () => {
  it('because the API refuses it', async () => {
    const message = 'There is no such replica.';
    const { url } = await startAdmin(() => ({
      status: 404,
      body: { error: { message, type: 'x', param: null, code: 'replica_not_found' } },
    }));
    expect(await invoke(['drain', 'x', '--admin', url], TOKEN)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `gateway: the admin API refused: ${message} (replica_not_found)\n`,
    });
  });

  it.each([
    ['another kind of server answers', { status: 200, body: '<html>secret' }, 'status 200'],
    ['a health check answers', { status: 200, body: { status: 'ok' } }, 'status 200'],
    ['another kind of server refuses', { status: 404, body: { detail: 'Not Found' } }, 'status 404'],
    ['a server wants TLS', { status: 400, body: '' }, 'status 400', ': it may want https://'],
  ])('because %s', async (_, answer, reason, hint = '') => {
    const { url } = await startAdmin(() => answer);
    const stderr = `gateway: ${url} does not answer like an admin API (${reason})${hint}\n`;
    expect(await invoke(['stats', '--admin', url], TOKEN)).toEqual({ exitCode: 1, stdout: '', stderr });
  });

  it('because it redirects: the token does not follow', async () => {
    const { url, calls } = await startAdmin(() => ({ status: 307, body: '' }));
    const { exitCode, stderr } = await invoke(['stats', '--admin', url], TOKEN);
    expect(exitCode).toBe(1);
    expect(stderr).toBe(
      `gateway: cannot reach the admin API at ${url}: it redirects, which is not followed: give the address where the redirect leads\n`,
    );
    expect(calls).toHaveLength(1);
  });

  it('because nothing listens', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const url = `http://127.0.0.1:${port}`;
    const stderr = `gateway: cannot reach the admin API at ${url}: connection refused\n`;
    expect(await invoke(['stats', '--admin', url], TOKEN)).toEqual({ exitCode: 1, stdout: '', stderr });
  });

  it('because what listens speaks no TLS, or no HTTP', async () => {
    const { url } = await startAdmin(() => ({ body: {} }));
    await using other = await startTcpServer();
    void other.next().then((side) => side.write('SSH-2.0-OpenSSH_9.9\r\n'));
    const tls = url.replace('http:', 'https:');
    for (const [base, why] of [
      [tls, 'it does not speak TLS: it may want http://'],
      [other.url, 'it does not speak HTTP'],
    ] as const) {
      const stderr = `gateway: cannot reach the admin API at ${base}: ${why}\n`;
      expect(await invoke(['stats', '--admin', base], TOKEN)).toEqual({ exitCode: 1, stdout: '', stderr });
    }
  });

  it('because no call goes to its port', async () => {
    const stderr =
      'gateway: cannot reach the admin API at http://127.0.0.1:1: fetch calls no server at this port\n';
    const call = ['stats', '--admin', 'http://127.0.0.1:1'];
    expect(await invoke(call, TOKEN)).toEqual({ exitCode: 1, stdout: '', stderr });
  });
});

describe('JSON of a server that is no admin API', () => {
  it.each([
    ['replicas'],
    ['drain', 'a'],
    ['drain', 'a', '--wait'],
    ['undrain', 'a'],
    ['reload'],
    ['forget', 'a'],
    ['gateways'],
    ['rollouts'],
    ['verdict', 'a'],
    ['compare', 'a'],
    ['records'],
    ['records', '--since', '1h'],
    ['records', '--request', 'id'],
    ['usage'],
    ['timeline'],
    ['statement', '--tenant', 'a', '--month', '2026-01'],
    ['top', '--once'],
    ['sign-in'],
  ])('is no answer to gateway %s', async (...command) => {
    const { url } = await startAdmin(() => ({ body: { status: 'ok' } }));
    expect(await invoke([...command, '--admin', url], TOKEN)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `gateway: ${url} does not answer like an admin API (status 200)\n`,
    });
  });
});
