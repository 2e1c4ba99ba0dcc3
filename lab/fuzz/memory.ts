import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { FuzzInput, FuzzTarget } from './fuzz-target.ts';

/** What a reader may keep of an input of n bytes: so much, and so many times n. */
const KEPT_BYTES = 512 * 1024;
const KEPT_TIMES = 16;
/** What it may allocate meanwhile: far more than any needs, and far less than a bomb. */
const ALLOCATED_BYTES = 8 * 1024 ** 2;
const ALLOCATED_TIMES = 2_048;
/** What may stay when the inputs are forgotten, of all inputs after the first ones. */
const GROWN_BYTES = 16 * 1024 ** 2;

/** The bounds, for the document. */
export const MEMORY_BOUNDS = `kept more than ${KEPT_BYTES / 1024} KiB and ${KEPT_TIMES} times its length, or allocated more than ${ALLOCATED_BYTES / 1024 ** 2} MiB and ${ALLOCATED_TIMES.toLocaleString('en')} times its length`;

setFlagsFromString('--expose-gc');
const collectOnce = runInNewContext('gc') as () => void;

/** The memory of buffers that the first collection finds is given back by the second one. */
function collectGarbage(): void {
  collectOnce();
  collectOnce();
}

/** What a read has kept and allocated, in bytes. */
export interface MemoryUse {
  readonly keptBytes: number;
  readonly allocatedBytes: number;
}

/** Reads an input with nothing else in memory, and measures. Rejects with what the reader throws. */
export async function measureRead(target: FuzzTarget, input: FuzzInput): Promise<MemoryUse> {
  await warmUp(target, input);
  collectGarbage();
  const before = getHeapStatistics();
  const kept: unknown[] = [await target.read(input)];
  const after = getHeapStatistics();
  collectGarbage();
  const keptBytes = toLiveBytes(getHeapStatistics()) - toLiveBytes(before);
  kept.pop();
  const allocatedBytes =
    after.total_allocated_bytes - before.total_allocated_bytes + externalGrowth(before, after);
  return { keptBytes, allocatedBytes };
}

/**
 * Code is compiled, and tables are made, for the first input of its kind. A function of its own: what is awaited stays
 * alive while the function runs.
 */
async function warmUp(target: FuzzTarget, input: FuzzInput): Promise<void> {
  await target.read(input);
}

/** What is wrong with it; null: nothing. */
export function judgeMemory({ keptBytes, allocatedBytes }: MemoryUse, inputBytes: number): string | null {
  if (keptBytes > KEPT_BYTES + KEPT_TIMES * inputBytes) {
    return `keeps ${keptBytes} bytes of an input of ${inputBytes}`;
  }
  if (allocatedBytes > ALLOCATED_BYTES + ALLOCATED_TIMES * inputBytes) {
    return `allocates ${allocatedBytes} bytes for an input of ${inputBytes}`;
  }
  return null;
}

/** Watches what stays of a run when its inputs are forgotten. */
export class GrowthWatch {
  #firstBytes: number | null = null;

  /** What is wrong after one more batch of inputs; null: nothing. */
  afterBatch(): string | null {
    collectGarbage();
    const bytes = toLiveBytes(getHeapStatistics());
    this.#firstBytes ??= bytes;
    const grownBytes = bytes - this.#firstBytes;
    return grownBytes > GROWN_BYTES ? `${grownBytes} bytes have stayed since the first batch` : null;
  }
}

type HeapStatistics = ReturnType<typeof getHeapStatistics>;

function toLiveBytes({ used_heap_size, external_memory }: HeapStatistics): number {
  return used_heap_size + external_memory;
}

function externalGrowth(before: HeapStatistics, after: HeapStatistics): number {
  return Math.max(0, after.external_memory - before.external_memory);
}
