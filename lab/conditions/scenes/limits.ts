import { createHash } from 'node:crypto';
import { answerStream, chatChunk, DONE, partial } from '#testkit/fake-replica.ts';
import type { Scene } from '../scene.ts';
import { toEntry } from '../stage.ts';

const KEY = 'sk-of-a-client-of-the-lab';
const CLIENT = { name: 'search', key_sha256: createHash('sha256').update(KEY).digest('hex') };

export const LIMIT_SCENES: readonly Scene[] = [
  {
    id: 'client_limit_reached',
    subject: 'search',
    isSlow: true,
    async play(stage) {
      const gateway = await stage.gateway({ clients: [{ ...CLIENT, requests_per_minute: 10 }] });
      const traffics: { stop(): void }[] = [];
      const fields = { Authorization: `Bearer ${KEY}` };
      return {
        gateway,
        bring: () => void traffics.push(stage.traffic(gateway, 5, { fields })),
        mend: () => traffics[0]?.stop(),
      };
    },
  },
  {
    id: 'tenant_limit_reached',
    subject: 'acme',
    isSlow: true,
    async play(stage) {
      // Every second stream falls silent after its first chunk, until the limit is full of such streams.
      const a = await stage.replica('a', {
        script: partial('text/event-stream', [chatChunk('word ')], 'nothing'),
      });
      const b = await stage.replica('b', { script: answerStream([chatChunk('word '), DONE]) });
      const gateway = await stage.gateway({
        replicas: [toEntry(a), toEntry(b)],
        clients: [{ ...CLIENT, tenant: 'acme' }],
        tenant_limits: { default: { max_inflight: 3 } },
      });
      const traffics: { stop(): void }[] = [];
      return {
        gateway,
        bring: () =>
          void traffics.push(
            stage.traffic(gateway, 5, { stream: true, fields: { Authorization: `Bearer ${KEY}` } }),
          ),
        mend: () => traffics[0]?.stop(),
      };
    },
  },
];
