import { randomBytes, randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RecordedHistory } from '#history';
import type { RequestRecord } from '#otel/record/registry';
import { toRandom } from '#testkit/random.ts';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { DRAINED, EMBED, ENGINES, GPUS, MODELS, PRICES, TENANTS } from './scene.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const DAYS = 7;
/** Requests per hour at the busiest time of a day. */
const BUSIEST = 420;
/** So many bytes of records may wait before more are made. */
const MAX_WAITING_BYTES = 8 * 1024 ** 2;

type Action = Parameters<RecordedHistory['action']>[0];

/** What happened in the past, by when: so long before the end. */
interface Scene {
  readonly agoMs: number;
  readonly action: Action;
}

/**
 * Writes a week of simulated requests, and what happened meanwhile, into the history of a state_dir, until now: the page
 * shows a range of days after minutes of real traffic.
 */
export async function writePast(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  const endMs = Date.now();
  let nowMs = endMs - DAYS * DAY_MS;
  const history = new RecordedHistory({
    path: join(stateDir, 'history.db'),
    version: '0.1.0',
    instanceId: randomUUID(),
    nowMs: () => nowMs,
    present: () => [],
    log: console,
  });
  await history.configure({ maxSizeBytes: 256 * 1024 ** 2, maxAgeMs: 35 * DAY_MS });
  const random = toRandom(34);
  const scenes = toScenes(endMs);
  for (let seq = 1; ; seq++) {
    nowMs += (HOUR_MS / toLoad(nowMs)) * -Math.log(1 - random());
    if (nowMs >= endMs) break;
    while (scenes[0] !== undefined && endMs - scenes[0].agoMs <= nowMs) {
      history.action(scenes[0].action);
      scenes.shift();
    }
    const record = toRecord(seq, { nowMs, isSlow: isRollingOut(endMs - nowMs), random });
    history.record({ record, encodedSpan: encodeRecord(record) });
    if (seq % 1_000 === 0) await history.ask({ kind: 'find', id: 'none', limit: 1 });
    while ((history.state?.waitingBytes ?? 0) > MAX_WAITING_BYTES) await sleep(5);
  }
  await history.stop();
}

/** Requests per hour: few at night. */
function toLoad(epochMs: number): number {
  const hour = (epochMs % DAY_MS) / HOUR_MS;
  return BUSIEST * (0.15 + 0.85 * Math.max(0, Math.sin(((hour - 5) / 16) * Math.PI)));
}

const ROLLOUT_AGO_MS = 20 * HOUR_MS;
const ROLLOUT_MS = 50 * MINUTE_MS;

function isRollingOut(agoMs: number): boolean {
  return agoMs < ROLLOUT_AGO_MS && agoMs > ROLLOUT_AGO_MS - ROLLOUT_MS;
}

function toRecord(
  seq: number,
  {
    nowMs,
    isSlow,
    random,
  }: { readonly nowMs: number; readonly isSlow: boolean; readonly random: () => number },
): RequestRecord {
  const model = MODELS[Math.floor(random() * MODELS.length)] ?? EMBED;
  const serving = ENGINES.filter((engine) => engine.model === model);
  const engine = serving[Math.floor(random() * serving.length)] ?? ENGINES[0];
  const isChat = model !== EMBED;
  const hasFailed = random() < (isSlow ? 0.08 : 0.006);
  const prompt = Math.round(60 + 900 * random() ** 3);
  const completion = isChat ? Math.round(20 + 500 * random() ** 2) : 0;
  const ttft = engine.ttftMs * (0.7 + 0.9 * random() ** 2) * (isSlow ? 3 : 1);
  const e2e = ttft + completion * engine.gapMs * (0.9 + 0.3 * random());
  const gpu = GPUS[model];
  const gpuSeconds = (gpu.gpu_count * e2e) / 1_000 / (1 + 3 * random());
  return {
    request_id: randomUUID(),
    trace_id: randomBytes(16).toString('hex'),
    ts: new Date(nowMs).toISOString(),
    replica: engine.name,
    model,
    endpoint: isChat ? '/v1/chat/completions' : '/v1/embeddings',
    tenant: TENANTS[Math.floor(random() * TENANTS.length)] ?? 'acme',
    status: hasFailed ? 500 : 200,
    stream: isChat,
    attempts: 1,
    e2e_ms: hasFailed ? ttft : e2e,
    ...(hasFailed || !isChat ? {} : { ttft_ms: ttft, completion_tokens: completion }),
    ...(hasFailed ? {} : { prompt_tokens: prompt, cached_tokens: Math.round(prompt * 0.4 * random()) }),
    gpu_seconds: gpuSeconds,
    cost: (gpuSeconds / 3_600) * PRICES[gpu.gpu_model],
    currency: 'EUR',
    instance: 'past',
    seq,
  };
}

/** A week of an operator, the oldest first. */
function toScenes(endMs: number): Scene[] {
  const minutes = (count: number) => count * MINUTE_MS;
  const hours = (count: number) => count * HOUR_MS;
  const scenes: readonly Scene[] = [
    ...toCondition(hours(150), minutes(90), {
      id: 'collector_away',
      severity: 'warning',
      subject: '',
      sentence: 'the collector does not take records (ECONNREFUSED)',
    }),
    ...toDrain(hours(122), hours(3), 'bge-m3-1', 'new disks'),
    ...toCondition(hours(75), minutes(70), {
      id: 'replica_unreachable',
      severity: 'warning',
      subject: 'vllm-qwen-32b-1',
      sentence: 'vllm-qwen-32b-1 does not answer (connection refused)',
    }),
    ...toCondition(hours(74.5), minutes(40), {
      id: 'tenant_limit_reached',
      severity: 'notice',
      subject: 'acme',
      sentence: 'acme has reached its limit of 32 requests at the same time',
    }),
    ...toRollout(endMs, ROLLOUT_AGO_MS, ROLLOUT_MS),
    {
      agoMs: hours(9),
      action: {
        action: 'reload',
        tokenName: 'deploy',
        startEpochMs: endMs - hours(9),
        done: { changedKeys: ['limits.tenants'], added: 0, changed: 0, removed: 0 },
      },
    },
    ...toDrain(hours(4), minutes(65), 'vllm-llama-70b-2', 'driver update'),
    ...toCondition(minutes(31), minutes(9), {
      id: 'replica_attempts_failing',
      severity: 'warning',
      subject: 'vllm-qwen-32b-1',
      sentence: 'vllm-qwen-32b-1 fails 14 % of its attempts',
    }),
    ...toDrain(minutes(44), minutes(16), DRAINED, 'kernel update'),
  ];
  return scenes.toSorted((a, b) => b.agoMs - a.agoMs);

  function toDrain(agoMs: number, lastsMs: number, replica: string, reason: string): Scene[] {
    return (['drain', 'undrain'] as const).map((action, at) => {
      const eachMs = agoMs - at * lastsMs;
      const drain = { action, replica, reason, wasDrained: action === 'undrain', inflight: 3 };
      return { agoMs: eachMs, action: { ...drain, tokenName: 'ops', startEpochMs: endMs - eachMs } };
    });
  }

  function toCondition(
    agoMs: number,
    lastsMs: number,
    of: {
      readonly id: string;
      readonly severity: string;
      readonly subject: string;
      readonly sentence: string;
    },
  ): Scene[] {
    return (['condition_begins', 'condition_ends'] as const).map((action, at) => ({
      agoMs: agoMs - at * lastsMs,
      action: { ...of, action, tokenName: null, startEpochMs: endMs - agoMs },
    }));
  }
}

/** A rollout of two replicas, whose steps are told as they end. */
function toRollout(endMs: number, agoMs: number, lastsMs: number): Scene[] {
  const traceId = randomBytes(16).toString('hex');
  const replicas = ['vllm-llama-70b-0', 'vllm-llama-70b-2'];
  const step = (
    name: 'rollout' | 'restart' | 'compare',
    replica: string | null,
    { from, to, outcome = 'ok', sentence = null }: StepTimes,
  ): Scene => ({
    agoMs: agoMs - to * lastsMs,
    action: {
      action: 'rollout_step',
      traceId,
      spanId: randomBytes(8).toString('hex'),
      parentSpanId: null,
      step: name,
      startEpochMs: endMs - agoMs + from * lastsMs,
      outcome,
      replica,
      sentence,
      figures: {},
      tokenName: 'deploy',
    },
  });
  return [
    ...replicas.flatMap((replica, at) => [
      step('restart', replica, { from: at / 2, to: at / 2 + 0.2 }),
      step('compare', replica, {
        from: at / 2 + 0.2,
        to: at / 2 + 0.48,
        outcome: 'good',
        sentence: `${replica} is as good as its peers`,
      }),
    ]),
    step('rollout', null, { from: 0, to: 1 }),
  ];
}

interface StepTimes {
  /** Shares of the whole. */
  readonly from: number;
  readonly to: number;
  readonly outcome?: 'ok' | 'good';
  readonly sentence?: string | null;
}
