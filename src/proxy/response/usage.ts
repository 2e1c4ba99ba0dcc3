import type { JsonCursor } from '../../json/cursor.ts';

/** An engine's usage figures; an absent figure was not told. */
export interface UsageFigures {
  promptTokens?: number;
  completionTokens?: number;
  cachedTokens?: number;
  reasoningTokens?: number;
}

/**
 * Reads the usage object that comes next at the cursor, in every spelling engines are known to use.
 * Values that are no non-negative integers are not figures.
 */
export function readUsage(cursor: JsonCursor): UsageFigures {
  const figures: UsageFigures = {};
  cursor.beginObject();
  while (cursor.nextKey()) {
    switch (cursor.key()) {
      case 'prompt_tokens':
        setCount(figures, 'promptTokens', cursor);
        break;
      case 'completion_tokens':
        setCount(figures, 'completionTokens', cursor);
        break;
      case 'reasoning_tokens':
        setCount(figures, 'reasoningTokens', cursor);
        break;
      // DeepSeek's spelling, Moonshot's, and the one that proxies take over from Anthropic's API.
      case 'prompt_cache_hit_tokens':
      case 'cached_tokens':
      case 'cache_read_input_tokens':
        setCount(figures, 'cachedTokens', cursor);
        break;
      case 'prompt_tokens_details':
      case 'input_tokens_details':
        readDetail(cursor, 'cached_tokens', 'cachedTokens', figures);
        break;
      case 'completion_tokens_details':
      case 'output_tokens_details':
        readDetail(cursor, 'reasoning_tokens', 'reasoningTokens', figures);
        break;
      default:
        cursor.skip();
    }
  }
  return figures;
}

/** Whether these are the zeros that some engines put on every chunk before the last (Ollama). */
export function isPlaceholder(figures: UsageFigures): boolean {
  return !figures.promptTokens && !figures.completionTokens;
}

function readDetail(cursor: JsonCursor, key: string, into: keyof UsageFigures, figures: UsageFigures): void {
  if (cursor.peek() !== 'object') {
    cursor.skip();
    return;
  }
  cursor.beginObject();
  while (cursor.nextKey()) {
    if (cursor.key() === key) setCount(figures, into, cursor);
    else cursor.skip();
  }
}

function setCount(figures: UsageFigures, name: keyof UsageFigures, cursor: JsonCursor): void {
  if (cursor.peek() !== 'number') {
    cursor.skip();
    return;
  }
  const value = cursor.readNumber();
  if (Number.isSafeInteger(value) && value >= 0) figures[name] = value;
}

/**
 * Adds up what a stream tells of usage: the last real figures, or the sum over choices where the engine
 * reports by choice: llama.cpp with n > 1 sends one usage chunk a choice, and a stream with continuous
 * usage that is cut leaves running figures a choice.
 */
export class UsageTally {
  readonly #choicesPerPrompt: number;
  readonly #isTotalPerChoice: boolean;
  /** Figures without a choice: the total, or with llama.cpp one a choice. */
  readonly #totals: UsageFigures[] = [];
  readonly #byChoice = new Map<number, UsageFigures>();

  /** @param isTotalPerChoice the engine sends one final usage chunk a choice instead of one in all */
  constructor(settings: { readonly choicesPerPrompt: number; readonly isTotalPerChoice: boolean }) {
    this.#choicesPerPrompt = Math.max(1, settings.choicesPerPrompt);
    this.#isTotalPerChoice = settings.isTotalPerChoice;
  }

  /** Notes the usage of a chunk that carries choice `index`, or no choice (null). */
  add(figures: UsageFigures, index: number | null): void {
    if (isPlaceholder(figures)) return;
    if (index !== null) {
      if (index < MAX_CHOICES) this.#byChoice.set(index, figures);
    } else if (this.#isTotalPerChoice && this.#totals.length < MAX_CHOICES) {
      this.#totals.push(figures);
    } else {
      this.#totals[0] = figures;
    }
  }

  /** The figures of the stream so far. */
  total(): UsageFigures {
    const perChoice = this.#totals.length > 0 ? this.#totals.entries() : this.#byChoice.entries();
    return sumOverChoices(perChoice, this.#choicesPerPrompt);
  }
}

const MAX_CHOICES = 1024;

/**
 * Completion and reasoning tokens of every choice; prompt and cached tokens once a prompt. The choices of the
 * k-th prompt have the indices from k·n (OpenAI API reference, completions, `n` and `best_of`).
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
    const prompt = Math.floor(index / choicesPerPrompt);
    if (countedPrompts.has(prompt)) continue;
    countedPrompts.add(prompt);
    addTo(sum, 'promptTokens', figures);
    addTo(sum, 'cachedTokens', figures);
  }
  return sum;
}

function addTo(sum: UsageFigures, name: keyof UsageFigures, figures: UsageFigures): void {
  const value = figures[name];
  if (value !== undefined) sum[name] = (sum[name] ?? 0) + value;
}
