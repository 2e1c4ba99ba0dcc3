import type { EngineRequest, EngineSpeed } from './simulated-engine.ts';

/** A kind of load, and the engines that it meets. */
export interface SilenceLoad {
  readonly engine: EngineSpeed;
  /** Requests per second of all replicas together, at a time. */
  readonly rateAt: (seconds: number) => number;
  readonly next: (random: () => number, seconds: number) => EngineRequest;
}

const GPU: EngineSpeed = { promptTokensPerSecond: 6_000, gapS: 0.025, slots: 64, readsPromptsAlone: false };
const GPU_WITHOUT_CHUNKS: EngineSpeed = { ...GPU, readsPromptsAlone: true };
const CPU: EngineSpeed = { promptTokensPerSecond: 80, gapS: 0.15, slots: 4, readsPromptsAlone: true };

const LONGEST_PROMPT = 131_072;

/** A whole number with a log-normal distribution of this median and standard deviation of the logarithm. */
function aroundMedian(random: () => number, median: number, deviation: number, most: number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return Math.max(1, Math.min(most, Math.round(median * Math.exp(deviation * normal))));
}

/** Requests with these medians. */
function chats({
  prompt,
  completion,
  streamShare = 0.8,
  toolShare = 0,
  deviation = 0.8,
  longestPrompt = LONGEST_PROMPT,
  longestCompletion = 8_192,
}: {
  readonly prompt: number;
  readonly completion: number;
  readonly streamShare?: number;
  readonly toolShare?: number;
  readonly deviation?: number;
  readonly longestPrompt?: number;
  readonly longestCompletion?: number;
}): SilenceLoad['next'] {
  return (random) => ({
    promptTokens: aroundMedian(random, prompt, deviation, longestPrompt),
    completionTokens: aroundMedian(random, completion, deviation, longestCompletion),
    isStream: random() < streamShare,
    heldShare: random() < toolShare ? 0.5 + 0.4 * random() : 0,
  });
}

const BURST = { everyS: 600, lastsS: 2, rate: 100 } as const;
const embedding: EngineRequest = { promptTokens: 300, completionTokens: 1, isStream: false, heldShare: 0 };
const chatBesideEmbeddings = chats({ prompt: 2_000, completion: 250 });

const steadyChats: SilenceLoad = {
  engine: GPU,
  rateAt: () => 8,
  next: chats({ prompt: 600, completion: 250 }),
};
const bursts: SilenceLoad = {
  engine: GPU,
  rateAt: (seconds) => (seconds % BURST.everyS < BURST.lastsS ? BURST.rate : 0.02),
  next: chats({ prompt: 3_000, completion: 250 }),
};
const longPrompts: SilenceLoad = {
  engine: GPU_WITHOUT_CHUNKS,
  rateAt: () => 0.3,
  next: chats({ prompt: 15_000, completion: 200, deviation: 0.9 }),
};
const fewRequests: SilenceLoad = {
  engine: GPU,
  rateAt: () => 0.02,
  next: chats({ prompt: 1_000, completion: 400, streamShare: 0.5, toolShare: 0.2, deviation: 1.2 }),
};
const hugeGenerations: SilenceLoad = {
  engine: GPU,
  rateAt: () => 0.03,
  next: chats({ prompt: 1_000, completion: 6_000, streamShare: 0.5, longestCompletion: 32_768 }),
};
const slowEngines: SilenceLoad = {
  engine: CPU,
  rateAt: () => 0.03,
  next: chats({ prompt: 400, completion: 150, streamShare: 0.7, deviation: 1, longestPrompt: 8_192 }),
};
const embeddingsAndChats: SilenceLoad = {
  engine: GPU,
  rateAt: () => 10,
  next: (random, seconds) => (random() < 0.99 ? embedding : chatBesideEmbeddings(random, seconds)),
};

/** A load with what it is called. */
export type NamedLoad = readonly [title: string, load: SilenceLoad];

/** Loads of healthy replicas. In most of them, a replica may be silent for long. */
export const SILENCE_LOADS: readonly NamedLoad[] = [
  ['steady chats', steadyChats],
  ['bursts of chats, and little between them', bursts],
  ['long prompts, read without a break', longPrompts],
  ['few requests, some with tools', fewRequests],
  ['huge generations, half of them not streamed', hugeGenerations],
  ['slow engines on CPUs', slowEngines],
  ['embeddings and chats', embeddingsAndChats],
];

const DAY_S = 86_400;
const NIGHT_BEGINS_S = 72_000;
const isNight = (seconds: number) => seconds % DAY_S >= NIGHT_BEGINS_S;

/** One load for twenty hours of a day, and another one, of the same engines, in the four hours of the night. */
function alternate(day: SilenceLoad, night: SilenceLoad): SilenceLoad {
  const at = (seconds: number) => (isNight(seconds) ? night : day);
  return {
    engine: night.engine,
    rateAt: (seconds) => at(seconds).rateAt(seconds),
    next: (random, seconds) => at(seconds).next(random, seconds),
  };
}

/** Loads that turn into what these replicas have not met before. */
export const CHANGING_LOADS: readonly NamedLoad[] = [
  ['steady chats; at night long prompts', alternate(steadyChats, longPrompts)],
  ['steady chats; at night few requests', alternate(steadyChats, fewRequests)],
  ['steady chats; at night huge generations', alternate(steadyChats, hugeGenerations)],
];
