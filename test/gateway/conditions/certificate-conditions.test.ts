import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import type { Finding } from '#conditions';
import { createAuthority, type TestAuthority } from '#testkit/certificates.ts';
import { conditionsOf, linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { createCertificateProducer } from '../../../src/gateway/conditions/certificate-conditions.ts';

let authority: TestAuthority;

beforeAll(async () => {
  authority = await createAuthority();
});
afterAll(() => authority[Symbol.asyncDispose]());
afterEach(() => void vi.useRealTimers());

const DAY_MS = 24 * 3_600_000;

test('each certificate has one condition, by the time that is left', async () => {
  const { cert, key } = await authority.issue('ending', undefined, 40);
  const tls = { clientCa: null, minVersion: 'TLSv1.2', ticketKeys: new Uint8Array(48) } as const;
  const current = { listen: { ...tls, pairs: [{ cert, key }] as const }, admin: null, replicas: [] };
  const startMs = Date.now();
  let nowMs = startMs;
  const produce = createCertificateProducer({ current, problem: null }, { list: () => [] }, () => nowMs);
  const idsAfter = (days: number) => {
    nowMs = startMs + days * DAY_MS;
    return [...(produce() as Iterable<Finding>)].map(({ id }) => id);
  };
  expect([9, 11, 32, 34, 38, 39.5, 41].map(idsAfter)).toEqual([
    [],
    ['certificate_ends_in_30_days'],
    ['certificate_ends_in_30_days'],
    ['certificate_ends_in_7_days'],
    ['certificate_ends_in_7_days'],
    ['certificate_ends_in_1_day'],
    ['certificate_ended'],
  ]);
});

async function startTlsGateway(days: number) {
  const folder = await temporaryFolder();
  const put = async (name: string, { certPath, keyPath } = { certPath: '', keyPath: '' }) => {
    await Promise.all([
      copyFile(certPath, join(folder, `${name}.pem`)),
      copyFile(keyPath, join(folder, `${name}.key`)),
    ]);
  };
  const first = await authority.issue('first', undefined, days);
  await put('listen', first);
  await put('replica', await authority.issue('for-replica', undefined, 6));
  const replica = await startFakeReplica();
  const gateway = await startGateway({
    replicas: [
      {
        name: 'a',
        url: replica.url.replace('http:', 'https:'),
        tls: { cert: join(folder, 'replica.pem'), key: join(folder, 'replica.key') },
      },
    ],
    config: { gateway: { tls: { cert: join(folder, 'listen.pem'), key: join(folder, 'listen.key') } } },
  });
  return {
    gateway,
    put,
    first,
    async [Symbol.asyncDispose]() {
      await gateway.close();
      await replica.close();
    },
  };
}

test('a certificate that has ended is told from the start, and until it is renewed', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 2 * DAY_MS });
  await using started = await startTlsGateway(1);
  const { gateway, put } = started;
  const on = await conditionsOf(gateway);
  expect(on.map(({ id, subject }) => [id, subject])).toEqual(
    expect.arrayContaining([
      ['certificate_ended', 'listen (CN=spangate first)'],
      ['certificate_ends_in_7_days', 'replica a (CN=spangate for-replica)'],
    ]),
  );
  await put('listen', await authority.issue('second'));
  await untilOver(gateway, 'certificate_ended');
  expect(linesOf(gateway, 'certificate_ended').at(-1)).toMatch(/^over: the certificate listen/);
  expect(gateway.logLines.join('\n')).toContain('certificate in use');
});

test('a key that does not fit is told until it does, in one line at each end', async () => {
  await using started = await startTlsGateway(40);
  const { gateway, put, first } = started;
  await put('listen', { certPath: first.certPath, keyPath: authority.ca.keyPath });
  const { subject, figures } = await untilCondition(gateway, 'certificate_unusable');
  expect(subject).toBe('gateway.tls');
  expect(figures.reason).toMatch(/^gateway\.tls: .*listen\.pem and .*listen\.key/);
  await put('listen', first);
  await untilOver(gateway, 'certificate_unusable');
  expect(linesOf(gateway, 'certificate_unusable')).toHaveLength(2);
});

test("a replica's own certificate is told before it ends, and until the replica shows another one", async () => {
  const old = await authority.issue('server', undefined, 5);
  const first = await startFakeReplica({ name: 'a', tls: old });
  const port = Number(new URL(first.url).port);
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: first.url, tls: { ca: authority.ca.certPath } }],
  });
  expect(await untilCondition(gateway, 'certificate_ends_in_7_days')).toMatchObject({
    subject: 'server a (CN=spangate server)',
  });
  expect(linesOf(gateway, 'certificate_ends_in_7_days')[0]).toMatch(
    /^the certificate server a .* expires in 4 d/,
  );
  await first.close();
  await using _next = await startFakeReplica({ name: 'a', port, tls: await authority.issue('server') });
  await untilOver(gateway, 'certificate_ends_in_7_days');
});
