import type { Spool } from '#otel/disk';

/** A directory of spool files in memory. Each run of a gateway opens its own spool. */
export interface MemoryDisk {
  /** The records of each file, oldest file first. */
  readonly files: readonly (readonly string[])[];
  /** How many more files can be written. */
  freeFiles: number;
  openSpool(): Spool;
}

const RECORDS_PER_FILE = 3;

/** Creates an empty directory. */
export function createMemoryDisk(): MemoryDisk {
  const files: string[][] = [];
  const disk: MemoryDisk = {
    files,
    freeFiles: Number.POSITIVE_INFINITY,
    openSpool() {
      const unread = [...files];
      return {
        unreadableFiles: 0,
        async next() {
          const file = unread.shift();
          if (file === undefined) return undefined;
          return {
            encodedSpans: file.map((text) => Buffer.from(text)),
            damagedCount: 0,
            async settle(count) {
              file.splice(0, count);
              if (file.length === 0) files.splice(files.indexOf(file), 1);
            },
          };
        },
        async put(encodedSpans) {
          let stored = 0;
          while (stored < encodedSpans.length && disk.freeFiles > 0) {
            const batch = encodedSpans.slice(stored, stored + RECORDS_PER_FILE);
            files.push(batch.map((encodedSpan) => Buffer.from(encodedSpan).toString()));
            disk.freeFiles -= 1;
            stored += batch.length;
          }
          return stored;
        },
      };
    },
  };
  return disk;
}
