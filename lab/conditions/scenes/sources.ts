import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { reloadWith } from '../act.ts';
import type { Scene } from '../scene.ts';
import { toEntry } from '../stage.ts';

export const SOURCE_SCENES: readonly Scene[] = [
  {
    id: 'kubernetes_failing',
    subject: 'vllm',
    async play(stage) {
      const api = stage.use(await startFakeApiServer());
      const a = await stage.replica('a');
      const port = Number(new URL(a.url).port);
      api.put({ name: 'vllm-1', pods: [{ name: 'vllm-0', address: '127.0.0.1' }], ports: [{ port }] });
      const gateway = await stage.gateway({
        replicas: [
          {
            name: 'vllm',
            kubernetes: { service: 'vllm', namespace: 'llm', api_server: api.url },
            models: ['m'],
          },
        ],
      });
      return {
        gateway,
        bring() {
          for (const kind of ['list', 'watch'] as const)
            api.answer(kind, (response) => void response.writeHead(503).end());
          api.cutWatches();
        },
        mend() {
          for (const kind of ['list', 'watch'] as const) api.answer(kind, null);
        },
      };
    },
  },
  {
    id: 'readiness_gate_failing',
    subject: 'vllm',
    async play(stage) {
      const api = stage.use(await startFakeApiServer());
      const a = await stage.replica('a', { address: '0.0.0.0' });
      const ports = [{ port: Number(new URL(a.url).port) }];
      const pod = (name: string, address: string) => ({ name, address, gates: ['spangate.dev/answers'] });
      const pods = [pod('vllm-0', '127.0.1.1')];
      api.put({ name: 'vllm-1', pods, ports });
      const kubernetes = { service: 'vllm', namespace: 'llm', api_server: api.url, readiness_gate: true };
      const gateway = await stage.gateway({ replicas: [{ name: 'vllm', kubernetes, models: ['m'] }] });
      await api.untilPatches(1);
      return {
        gateway,
        bring() {
          api.answer('patch', (response) => void response.writeHead(403).end());
          api.put({ name: 'vllm-1', pods: [...pods, pod('vllm-1', '127.0.1.2')], ports });
        },
        mend: () => api.answer('patch', null),
      };
    },
  },
  {
    id: 'dns_failing',
    subject: 'vllm',
    async play(stage) {
      const b = toEntry(await stage.replica('b'));
      const dns = { name: 'vllm', dns: 'http://nobody.invalid:8000', models: ['m'] };
      const gateway = await stage.gateway({ replicas: [b, dns] });
      const folder = await stage.folder('gateway');
      return { gateway, mend: () => reloadWith(gateway, folder, (config) => ({ ...config, replicas: [b] })) };
    },
  },
  {
    id: 'jwks_failing',
    subject: /jwks/,
    async play(stage) {
      const key = await makeKey('1');
      const issuer = stage.use(await startIssuer(key));
      const path = join(await stage.folder('keys'), 'jwks.json');
      const text = JSON.stringify({ keys: [key.jwk] });
      await writeFile(path, text);
      const jwt = { issuer: issuer.issuer, audience: 'spangate', jwks: path, tenant_claim: 'tenant' };
      const gateway = await stage.gateway({ jwt });
      return { gateway, bring: () => writeFile(path, '{'), mend: () => writeFile(path, text) };
    },
  },
  {
    id: 'jwks_missing',
    subject: /jwks/,
    async play(stage) {
      const key = await makeKey('1');
      const issuer = stage.use(await startIssuer(key));
      issuer.answerWith((response) => response.writeHead(500).end());
      const { issuer: name, jwksUrl: jwks } = issuer;
      const gateway = await stage.gateway({
        jwt: { issuer: name, audience: 'spangate', jwks, tenant_claim: 'tenant' },
      });
      return { gateway, mend: () => issuer.publish(key) };
    },
  },
];
