import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConnectionOptions, connect } from 'node:tls';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const ATTEMPTS = 12; // so that both workers get some

let folder: string;
let authority: TestAuthority;
let replica: FakeReplica;

beforeAll(async () => {
  [folder, authority, replica] = await Promise.all([
    mkdtemp(join(tmpdir(), 'spangate-tls-sessions-')),
    createAuthority(),
    startFakeReplica(),
  ]);
});

afterAll(async () => {
  await Promise.all([authority, replica].map((each) => each[Symbol.asyncDispose]()));
  await rm(folder, { recursive: true });
});

interface Visit {
  readonly session: Buffer;
  readonly isReused: boolean;
  readonly answer: string;
}

/** Opens a connection, sends one request, and waits for the answer and for a ticket. */
function visit({ url }: StartedGateway, options: ConnectionOptions): Promise<Visit> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ca: authority.ca.cert, ...options });
    onTestFinished(() => void socket.destroy());
    let session = options.session ?? null;
    let answer = '';
    socket.on('session', (next) => {
      session = next;
    });
    socket.on('data', (bytes) => {
      answer += bytes;
    });
    socket.once('end', () => {
      const isReused = socket.isSessionReused();
      socket.destroy();
      if (session === null) reject(new Error('the gateway gave no ticket'));
      else resolve({ session, isReused, answer });
    });
    socket.once('error', reject);
    const body = '{"model":"m","messages":[]}';
    socket.write(
      'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nConnection: close\r\nContent-Type: application/json\r\n' +
        `Content-Length: ${body.length}\r\n\r\n${body}`,
    );
  });
}

async function put({ certPath, keyPath }: IssuedCertificate) {
  const paths = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  await Promise.all([copyFile(certPath, paths.cert), copyFile(keyPath, paths.key)]);
  return paths;
}

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a ticket of %s resumes the session at every worker, and not after the certificate was replaced',
  async (version) => {
    const options: ConnectionOptions = { minVersion: version, maxVersion: version };
    const tls = await put(await authority.issue('server'));
    await using gateway = await startGateway({
      replicas: [replica],
      config: { gateway: { tls, workers: 2 } },
    });
    const { session, isReused } = await visit(gateway, options);
    expect(isReused).toBe(false);
    const resume = () => visit(gateway, { ...options, session });
    const resumed = await Promise.all(Array.from({ length: ATTEMPTS }, resume));
    expect(resumed.map((each) => each.isReused)).toEqual(resumed.map(() => true));

    expect((await gateway.reload()).status).toBe(200);
    expect((await resume()).isReused).toBe(true); // the files are as before

    await put(await authority.issue('successor'));
    expect((await gateway.reload()).status).toBe(200);
    const fresh = await Promise.all(Array.from({ length: ATTEMPTS }, resume));
    expect(fresh.map((each) => each.isReused)).toEqual(fresh.map(() => false));
    for (const { answer } of [...resumed, ...fresh]) expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
  },
);

test.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'a resumed session of %s still has the client certificate, and none is resumed once its authority is not trusted',
  async (version) => {
    const [client, other] = await Promise.all([authority.issue('client'), createAuthority()]);
    const client_ca = join(folder, 'client-ca.pem');
    await copyFile(authority.ca.certPath, client_ca);
    const tls = { ...(await put(await authority.issue('server'))), client_ca, record_subject: true };
    await using gateway = await startGateway({ replicas: [replica], config: { gateway: { tls } } });
    const options: ConnectionOptions = {
      minVersion: version,
      maxVersion: version,
      cert: client.cert,
      key: client.key,
    };
    const { session } = await visit(gateway, options);
    expect((await visit(gateway, { ...options, session })).isReused).toBe(true);
    const records = await gateway.waitForRecords(2);
    expect(records.map(({ client_subject }) => client_subject)).toEqual(
      records.map(() => 'CN=spangate client'),
    );

    await copyFile(other.ca.certPath, client_ca);
    expect((await gateway.reload()).status).toBe(200);
    const refused = visit(gateway, { ...options, session });
    expect(await refused.then(({ answer }) => answer).catch(() => '')).toBe('');
    await other[Symbol.asyncDispose]();
  },
);
