import type { Random } from './random.ts';
import { LINE_ENDS, SPECIAL_BYTES } from './tricks/field-lines.ts';

/** Changes a text in up to four places. */
export function mutate(random: Random, text: string): string {
  let mutated = text;
  for (let left = 1 + random.below(4); left > 0; left--) mutated = mutateOnce(random, mutated);
  return mutated;
}

function mutateOnce(random: Random, text: string): string {
  const start = random.below(text.length + 1);
  const end = Math.min(text.length, start + 1 + random.below(random.chance(80) ? 3 : 40));
  const before = text.slice(0, start);
  const piece = text.slice(start, end);
  const after = text.slice(end);
  switch (random.below(9)) {
    case 0:
      return before + after;
    case 1:
      return before + piece + piece + after;
    case 2:
      return before + random.pick(SPECIAL_BYTES) + piece + after;
    case 3:
      return before + random.pick(SPECIAL_BYTES) + text.slice(start + 1);
    case 4:
      return before + String.fromCharCode(random.below(256)) + text.slice(start + 1);
    case 5:
      return before + flipCase(piece) + after;
    case 6:
      return replaceLineEnd(random, text, start);
    case 7:
      return moveTo(random, before + after, piece);
    default:
      return flipBit(random, text, start);
  }
}

function flipCase(text: string): string {
  return text === text.toLowerCase() ? text.toUpperCase() : text.toLowerCase();
}

function replaceLineEnd(random: Random, text: string, from: number): string {
  const at = text.indexOf('\r\n', from);
  return at === -1 ? text : text.slice(0, at) + random.pick(LINE_ENDS) + text.slice(at + 2);
}

function moveTo(random: Random, text: string, piece: string): string {
  const at = random.below(text.length + 1);
  return text.slice(0, at) + piece + text.slice(at);
}

function flipBit(random: Random, text: string, at: number): string {
  if (at >= text.length) return text;
  const flipped = String.fromCharCode(text.charCodeAt(at) ^ (1 << random.below(8)));
  return text.slice(0, at) + flipped + text.slice(at + 1);
}
