/** One request of a trace, as a replay tool makes it up: each token has a name, equal names are equal tokens. */
export interface ReplayedRequest {
  readonly atMs: number;
  readonly ids: readonly number[];
  readonly tokens: readonly string[];
  readonly outputTokens: number;
  /** How many tokens at the beginning are the same. */
  sharedWith(other: ReplayedRequest): number;
}

/**
 * Reads a trace as replay tools do: each id is a block of `blockTokens` tokens, made once and used again; the last
 * of a request is as long as what is left. Throws where they would: a rest that is empty or longer than a block,
 * an id with two lengths, time that runs backwards.
 */
export function readTrace(text: string, blockTokens: number): readonly ReplayedRequest[] {
  const lengths = new Map<number, number>();
  let lastMs = 0;
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { timestamp, input_length, output_length, hash_ids, ...others } = JSON.parse(line);
      if (Object.keys(others).length > 0) throw new Error('a member that the format does not have');
      if (timestamp < lastMs) throw new Error('time runs backwards');
      lastMs = timestamp;
      return toReplayed({
        atMs: timestamp,
        inputTokens: input_length,
        outputTokens: output_length,
        ids: hash_ids,
      });
    });

  function toReplayed(line: { atMs: number; inputTokens: number; outputTokens: number; ids: number[] }) {
    const { atMs, inputTokens, outputTokens, ids } = line;
    const rest = inputTokens - (ids.length - 1) * blockTokens;
    if (ids.length > 0 && (rest <= 0 || rest > blockTokens)) throw new Error('ids and length do not fit');
    const tokens = ids.flatMap((id, index) => {
      const length = index === ids.length - 1 ? rest : blockTokens;
      if ((lengths.get(id) ?? length) !== length) throw new Error('an id with two lengths');
      lengths.set(id, length);
      return Array.from({ length }, (_, offset) => `${id}.${offset}`);
    });
    const sharedWith = (other: ReplayedRequest) => {
      const end = tokens.findIndex((token, index) => other.tokens[index] !== token);
      return end === -1 ? tokens.length : end;
    };
    return { atMs, ids, tokens, outputTokens, sharedWith };
  }
}
