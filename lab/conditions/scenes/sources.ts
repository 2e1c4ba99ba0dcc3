import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
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
          { name: 'vllm', kubernetes: { service: 'vllm', namespace: 'llm', api: api.url }, models: ['m'] },
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
    id: 'dns_failing',
    subject: 'vllm',
    isSlow: true,
    async play(stage) {
      const gateway = await stage.gateway({
        replicas: [
          toEntry(await stage.replica('b')),
          { name: 'vllm', dns: { name: 'nobody.invalid', port: 8000 }, models: ['m'] },
        ],
      });
      return { gateway };
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
];
