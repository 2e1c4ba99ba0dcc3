import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../invoke.ts';

const pathsOf = ({ certPath, keyPath }: IssuedCertificate) => ({ cert: certPath, key: keyPath });

/** Writes the configuration of a gateway that listens at this URL. */
async function writeConfig(url: string, gateway: object = {}): Promise<string> {
  const folder = await temporaryFolder();
  const path = join(folder, 'gateway.yaml');
  const listen = `0.0.0.0:${new URL(url).port}`;
  const replicas = [{ name: 'a', url: 'http://10.0.0.1:8000' }];
  await writeFile(path, JSON.stringify({ gateway: { listen, ...gateway }, replicas }));
  return path;
}

describe('gateway health', () => {
  let authority: TestAuthority;
  beforeAll(async () => {
    authority = await createAuthority();
  });
  afterAll(() => authority[Symbol.asyncDispose]());

  it('prints ok while the gateway serves, and ends with 1 when nobody listens', async () => {
    await using replica = await startFakeReplica({ name: 'a' });
    const gateway = await startGateway({ replicas: [replica] });
    const SVC_CONFIG = await writeConfig(gateway.url);
    expect(await invoke(['health'], { SVC_CONFIG })).toEqual({ exitCode: 0, stdout: 'ok\n', stderr: '' });
    await gateway[Symbol.asyncDispose]();
    const { origin } = new URL(gateway.url);
    expect(await invoke(['health'], { SVC_CONFIG })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `gateway: ${origin}/healthz cannot be reached: connection refused\n`,
    });
  });

  it('ends with 1 when the answer is not 2xx, as during a shutdown', async () => {
    const server = createServer((_, response) => response.writeHead(503).end()).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await new Promise((resolve) => server.once('listening', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await invoke(['health', '-config', await writeConfig(url)])).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `gateway: ${url}/healthz answered 503\n`,
    });
  });

  it('trusts the certificate of the configuration, whatever name it is for, and no other', async () => {
    const own = await authority.issue('own', 'DNS:gateway.example');
    const other = await authority.issue('other', 'DNS:gateway.example');
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { gateway: { tls: pathsOf(own) } },
    });
    const ask = async (certificate: IssuedCertificate) =>
      await invoke(['health', '-config', await writeConfig(gateway.url, { tls: pathsOf(certificate) })]);
    expect(await ask(own)).toMatchObject({ exitCode: 0, stdout: 'ok\n' });
    expect(await ask(other)).toMatchObject({ exitCode: 1, stdout: '' });
  });

  it('says that a gateway may want a client certificate', async () => {
    const own = await authority.issue('own', 'DNS:gateway.example');
    await using replica = await startFakeReplica({ name: 'a' });
    const tls = { ...pathsOf(own), client_ca: authority.ca.certPath };
    await using gateway = await startGateway({ replicas: [replica], config: { gateway: { tls } } });
    const path = await writeConfig(gateway.url, { tls });
    expect(await invoke(['health', '-config', path])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('it may want a client certificate (--cert and --key)'),
    });
    const options = ['--cert', own.certPath, '--key', own.keyPath];
    expect(await invoke(['health', '-config', path, ...options])).toMatchObject({ exitCode: 0 });
  });
});
