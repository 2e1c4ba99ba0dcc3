import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Measurement, Sample } from './case.ts';
import type { Load, Outcome } from './driver.ts';

const CHAT = '/v1/chat/completions';
const EVENTS_PER_SECOND = 10_000;

/** Clients of a closed loop, by default. */
export const CLIENTS = 16;
/** Characters of a prompt, by default. */
export const PROMPT_CHARS = 2000;

/** The figures of a closed loop. */
export const CPU_FIGURES: readonly Figure[] = [
  { key: 'cpuUs', title: 'CPU per request, µs', digits: 0 },
  { key: 'perSecond', title: 'requests/s', digits: 0 },
  { key: 'p50Us', title: 'p50, µs', digits: 0 },
  { key: 'p99Us', title: 'p99, µs', digits: 0 },
];

/** The sample of a closed loop, by {@link CPU_FIGURES}. */
export function toCpuSample({ cpuUs, requests, seconds, p50Us, p99Us }: Outcome): Sample {
  return { cpuUs: cpuUs / requests, perSecond: requests / seconds, p50Us, p99Us };
}

/** A closed loop of the usual number of clients. */
export function toLoad({ headers, warmMs, runMs }: Measurement, bodyFile: string): Load {
  return { mode: 'closed', path: CHAT, bodyFile, connections: CLIENTS, headers, warmMs, runMs };
}

/** Streams with the same total of events per second, whatever their number. */
export function toPacedLoad(measurement: Measurement, streams: number): Load {
  const intervalUs = (streams * 1e6) / EVENTS_PER_SECOND;
  const bodyFile = writeBody(measurement.folder, `@@paced:${intervalUs}`, PROMPT_CHARS);
  return { ...toLoad(measurement, bodyFile), mode: 'paced', connections: streams };
}

/** Events per second of each stream. */
export function toEventsPerSecond(streams: number): number {
  return EVENTS_PER_SECOND / streams;
}

/** Writes a request body to a file; `mark` tells the mock replica what to answer. */
export function writeBody(folder: string, mark: string, promptChars: number): string {
  const prompt = `${mark} ${'lorem ipsum '.repeat(promptChars / 12)}`;
  const messages = [
    { role: 'system', content: 'You are helpful.' },
    { role: 'user', content: prompt },
  ];
  const isStream = mark.startsWith('@@');
  const body =
    mark === 'embeddings'
      ? { model: 'm', input: prompt }
      : { model: 'm', ...(isStream ? { stream: true } : {}), max_tokens: 40, messages };
  const file = join(folder, `body-${mark.replaceAll(/\W/g, '')}-${promptChars}.json`);
  writeFileSync(file, JSON.stringify(body));
  return file;
}
