import { createRandom } from './settings.ts';

/** A unit vector that depends on the text alone, so that equal inputs have equal embeddings. */
export function embed(text: string, dimensions: number): readonly number[] {
  let seed = 0;
  for (let index = 0; index < text.length; index += 1)
    seed = Math.imul(seed ^ text.charCodeAt(index), 0x01000193);
  const random = createRandom(seed);
  const vector = Array.from({ length: dimensions }, () => random() * 2 - 1);
  const length = Math.hypot(...vector);
  return vector.map((value) => Math.fround(value / length));
}

/** The vector as little-endian float32 in base64, as `encoding_format: base64` asks for. */
export function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  for (const [index, value] of vector.entries()) bytes.writeFloatLE(value, index * 4);
  return bytes.toString('base64');
}
