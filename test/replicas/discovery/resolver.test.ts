import { expect, test } from 'vitest';
import { srvRecord, startDnsServer } from '#testkit/servers/dns-server.ts';
import { createResolver } from '../../../src/replicas/discovery/resolver.ts';

const SERVICE = '_http._tcp.vllm.llm.svc.cluster.local';

test('SRV records resolve to their targets and ports', async () => {
  await using server = await startDnsServer([
    srvRecord(SERVICE, 'vllm-0.vllm.llm.svc.cluster.local', 8000),
    srvRecord(SERVICE, 'vllm-1.vllm.llm.svc.cluster.local', 8001),
  ]);
  const found = await createResolver([server.address]).resolveService(SERVICE);
  expect(found.toSorted((a, b) => (a.port ?? 0) - (b.port ?? 0))).toEqual([
    { host: 'vllm-0.vllm.llm.svc.cluster.local', port: 8000 },
    { host: 'vllm-1.vllm.llm.svc.cluster.local', port: 8001 },
  ]);
  expect(server.questions.items).toEqual([SERVICE]);
});

test.each(['NXDOMAIN', 'SERVFAIL'] as const)('%s is a failure, not an empty service', async (answer) => {
  await using server = await startDnsServer(answer);
  await expect(createResolver([server.address]).resolveService(SERVICE)).rejects.toThrow();
});

test('a host name is resolved as for connections: also from the hosts file', async () => {
  const found = await createResolver().resolveHost('localhost');
  expect(found).toContainEqual({ host: '127.0.0.1', port: null });
});
