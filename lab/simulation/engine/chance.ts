import { Random } from '../../fuzz-http/random.ts';

/**
 * A source of chance of its own for each purpose: what one part of the world draws does not change what another part
 * draws, so that a smaller plan keeps most of what happened in a larger one.
 */
export function createChance(seed: number, purpose: string): Chance {
  return new Chance(seed, hashOf(purpose));
}

/** Random numbers of one purpose. */
export class Chance extends Random {
  /** At least `least`, less than `bound`. */
  between(least: number, bound: number): number {
    return least + this.fraction() * (bound - least);
  }

  /** 0 ≤ n < 1, with 32 bits. */
  fraction(): number {
    return this.below(2 ** 32) / 2 ** 32;
  }

  /** Fills bytes. */
  fill<T extends Uint8Array>(bytes: T): T {
    for (let at = 0; at < bytes.length; at++) bytes[at] = this.below(256);
    return bytes;
  }
}

/** FNV-1a. */
export function hashOf(text: string, before = 0x811c9dc5): number {
  let hash = before;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash >>> 0;
}

/** RFC 9562, version 4. */
export function toUuid(bytes: Buffer): string {
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
