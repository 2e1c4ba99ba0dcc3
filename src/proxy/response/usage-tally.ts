/** An engine's usage figures. An absent figure is unknown. */
export interface UsageFigures {
  /** All tokens of the prompt. */
  promptTokens?: number;
  completionTokens?: number;
  /** Prompt tokens that were read from the engine's prefix cache. */
  cachedTokens?: number;
  /** Prompt tokens that were written to it. */
  cacheCreationTokens?: number;
  reasoningTokens?: number;
  /** Prompt tokens that stand for audio, and for images. */
  promptAudioTokens?: number;
  promptImageTokens?: number;
  /** Completion tokens that are audio. */
  completionAudioTokens?: number;
  /** Seconds of audio, where the API counts these. */
  audioSeconds?: number;
  /** Prompt tokens that were neither read from the cache nor written to it, where the API counts these alone. */
  uncachedTokens?: number;
}

/** Whether these are the zeros that some engines (Ollama) put on every chunk before the last. */
export function isPlaceholder(figures: UsageFigures): boolean {
  const { promptTokens, completionTokens, uncachedTokens, cachedTokens, cacheCreationTokens } = figures;
  if (promptTokens || completionTokens) return false;
  return !uncachedTokens && !cachedTokens && !cacheCreationTokens;
}

/**
 * How the usage in the events of a stream adds up. `last`: each event that has usage tells all of it. `in_parts`: an
 * event tells what has changed.
 */
export type UsageInStream = 'last' | 'in_parts';

/** How an engine reports the usage of one request. */
export interface UsageTallySettings {
  /** The `n` of the request. */
  readonly choicesPerPrompt: number;
  /** Whether the engine sends a final usage chunk per choice instead of one in all. */
  readonly isTotalPerChoice: boolean;
  readonly endpoint: { readonly usageInStream: UsageInStream };
}

/**
 * Adds up the usage of a stream: the last real figures, or the sum over choices where the engine reports usage per
 * choice. llama.cpp with n > 1 sends one usage chunk per choice. A stream with continuous usage that breaks off leaves
 * running figures per choice.
 */
export class UsageTally {
  readonly #choicesPerPrompt: number;
  readonly #isTotalPerChoice: boolean;
  readonly #isInParts: boolean;
  /** Figures without a choice: one total; with llama.cpp one per choice. */
  readonly #totals: UsageFigures[] = [];
  readonly #byChoice = new Map<number, UsageFigures>();

  constructor(settings: UsageTallySettings) {
    this.#choicesPerPrompt = Math.max(1, settings.choicesPerPrompt);
    this.#isTotalPerChoice = settings.isTotalPerChoice;
    this.#isInParts = settings.endpoint.usageInStream === 'in_parts';
  }

  /**
   * Takes the usage of a chunk that carries choice `index`, or no choice (null).
   *
   * @param isEnd whether the chunk ends a stream, or a choice of it, in which nothing was generated: then zeros are figures,
   *   as of an empty prompt at llama.cpp, unless there were others before
   */
  add(figures: UsageFigures, index: number | null, isEnd: boolean): void {
    if (this.#isInParts) {
      this.#totals[0] = { ...this.#totals[0], ...figures };
      return;
    }
    const isFirst = this.#totals.length === 0 && this.#byChoice.size === 0;
    if (isPlaceholder(figures) && !(isEnd && isFirst)) return;
    if (index !== null) {
      if (index < MAX_CHOICES) this.#byChoice.set(index, figures);
    } else if (this.#isTotalPerChoice && this.#totals.length < MAX_CHOICES) {
      this.#totals.push(figures);
    } else {
      this.#totals[0] = figures;
    }
  }

  /**
   * Where the figures come from. `final`: the engine said them of the whole stream. `progressive`: they are running figures
   * of a stream that broke off. `absent`: there are none. `isWhole`: whether the stream declared itself complete.
   */
  sourceOf(isWhole: boolean): 'final' | 'progressive' | 'absent' {
    if (Object.keys(this.total()).length === 0) return 'absent';
    const isTotal = this.#totals.length > 0 && !this.#isInParts && !this.#isTotalPerChoice;
    return isWhole || isTotal ? 'final' : 'progressive';
  }

  /** The figures of the stream so far. */
  total(): UsageFigures {
    const total = sumOverChoices(this.#totals.entries(), this.#choicesPerPrompt);
    // llama.cpp sends a total when its choice ends. In a stream that breaks off, others may have running figures alone.
    if (this.#totals.length >= (this.#isTotalPerChoice ? this.#byChoice.size : 1)) return total;
    return { ...total, ...sumOverChoices(this.#byChoice, this.#choicesPerPrompt) };
  }
}

const MAX_CHOICES = 1024;

/**
 * Completion and reasoning tokens of every choice; prompt and cached tokens once per prompt. The choices of the
 * k-th prompt have the indexes from k·n (OpenAI API reference, completions, `n` and `best_of`).
 */
function sumOverChoices(
  choices: Iterable<readonly [number, UsageFigures]>,
  choicesPerPrompt: number,
): UsageFigures {
  const sum: UsageFigures = {};
  const countedPrompts = new Set<number>();
  for (const [index, figures] of choices) {
    addTo(sum, 'completionTokens', figures);
    addTo(sum, 'reasoningTokens', figures);
    addTo(sum, 'completionAudioTokens', figures);
    const prompt = Math.floor(index / choicesPerPrompt);
    if (countedPrompts.has(prompt)) continue;
    countedPrompts.add(prompt);
    addTo(sum, 'promptTokens', figures);
    addTo(sum, 'cachedTokens', figures);
    addTo(sum, 'cacheCreationTokens', figures);
    addTo(sum, 'uncachedTokens', figures);
    addTo(sum, 'promptAudioTokens', figures);
    addTo(sum, 'promptImageTokens', figures);
    addTo(sum, 'audioSeconds', figures);
  }
  return sum;
}

/**
 * The figures with all tokens of the prompt. Where the API counts the uncached ones alone, they are the sum of all three
 * (Anthropic API reference, `usage`; vLLM since vllm-project/vllm#40912, llama.cpp).
 */
export function withPromptTokens(figures: UsageFigures): UsageFigures {
  const { uncachedTokens, cachedTokens = 0, cacheCreationTokens = 0 } = figures;
  if (uncachedTokens === undefined) return figures;
  return { ...figures, promptTokens: uncachedTokens + cachedTokens + cacheCreationTokens };
}

function addTo(sum: UsageFigures, name: keyof UsageFigures, figures: UsageFigures): void {
  const value = figures[name];
  if (value !== undefined) sum[name] = (sum[name] ?? 0) + value;
}
