import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Figure, Measurement, Sample } from './case.ts';
import type { Load, Outcome } from './driver.ts';

const CHAT = '/v1/chat/completions';
const EVENTS_PER_SECOND = 10_000;

/** Clients of a closed loop, where a case does not say otherwise. */
export const CLIENTS = 16;
/** Characters of a prompt, where a case does not say otherwise. */
export const PROMPT_CHARS = 2000;

/** The figures of a closed loop. */
export const CPU_FIGURES: readonly Figure[] = [
  { key: 'cpuUs', title: 'CPU a request, µs', digits: 0 },
  { key: 'perSecond', title: 'requests/s', digits: 0 },
  { key: 'p50Us', title: 'p50, µs', digits: 0 },
  { key: 'p99Us', title: 'p99, µs', digits: 0 },
];

/** What a closed loop's figures are made of. */
export function toCpuSample({ cpuUs, requests, seconds, p50Us, p99Us }: Outcome): Sample {
  return { cpuUs: cpuUs / requests, perSecond: requests / seconds, p50Us, p99Us };
}

/** A closed loop of the usual number of clients. */
export function toLoad({ headers, warmMs, runMs }: Measurement, bodyFile: string): Load {
  return { mode: 'closed', path: CHAT, bodyFile, connections: CLIENTS, headers, warmMs, runMs };
}

/** Streams whose events a second are the same in sum for every number of them. */
export function toPacedLoad(measurement: Measurement, streams: number): Load {
  const intervalUs = (streams * 1e6) / EVENTS_PER_SECOND;
  const bodyFile = writeBody(measurement.folder, `@@paced:${intervalUs}`, PROMPT_CHARS);
  return { ...toLoad(measurement, bodyFile), mode: 'paced', connections: streams };
}

/** How many events a second each of so many streams has. */
export function toEventsPerSecond(streams: number): number {
  return EVENTS_PER_SECOND / streams;
}

/** A request's body in a file: `mark` tells the mock replica what to answer. */
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
