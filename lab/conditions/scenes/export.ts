import type { FakeCollector } from '#testkit/fake-collector.ts';
import type { Scene } from '../scene.ts';
import { type Stage, toEntry } from '../stage.ts';

/** A gateway under load whose collector does as it is told. */
async function underLoad(stage: Stage, settings: object, perSecond = 20) {
  const collector: FakeCollector = await stage.collector();
  const gateway = await stage.gateway({
    replicas: [toEntry(await stage.replica('a'))],
    export: { endpoint: collector.url, interval: '100ms', ...settings },
  });
  stage.traffic(gateway, perSecond);
  return { collector, gateway };
}

export const EXPORT_SCENES: readonly Scene[] = [
  {
    id: 'queue_filling',
    subject: '',
    async play(stage) {
      // It is half full after 8 s and full after 16: the condition, which begins seconds after half, has time to be seen.
      const { collector, gateway } = await underLoad(stage, { queue_size: 800, batch_size: 10 }, 50);
      return {
        gateway,
        bring: () => collector.answerAlways({ status: 503 }),
        mend: () => collector.answerAlways({}),
      };
    },
  },
  {
    id: 'records_dropped',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { collector, gateway } = await underLoad(stage, { queue_size: 20, batch_size: 10 });
      return {
        gateway,
        bring: () => collector.answerAlways({ status: 503 }),
        mend: () => collector.answerAlways({}),
      };
    },
  },
  {
    id: 'records_rejected',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { collector, gateway } = await underLoad(stage, {});
      return {
        gateway,
        bring: () => collector.answerAlways({ status: 400 }),
        mend: () => collector.answerAlways({}),
      };
    },
  },
  {
    id: 'collector_away',
    subject: '',
    async play(stage) {
      const { collector, gateway } = await underLoad(stage, {});
      return {
        gateway,
        bring: () => collector.answerAlways({ cut: true }),
        mend: () => collector.answerAlways({}),
      };
    },
  },
  {
    id: 'collector_slow',
    subject: '',
    async play(stage) {
      const { collector, gateway } = await underLoad(stage, {});
      const { promise, resolve } = Promise.withResolvers<void>();
      stage.defer(resolve);
      return {
        gateway,
        bring: () => collector.answerAlways({ after: promise }),
        mend() {
          collector.answerAlways({});
          resolve();
        },
      };
    },
  },
];
