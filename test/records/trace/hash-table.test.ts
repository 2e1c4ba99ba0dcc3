import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HashTable } from '../../../src/records/trace/hash-table.ts';
import { HASH_BYTES } from '../../../src/records/trace/traced-request.ts';

const bytesOf = (hash: bigint): Buffer => {
  const bytes = Buffer.alloc(HASH_BYTES);
  bytes.writeBigUInt64BE(hash);
  return bytes;
};

test('a hash table holds the same numbers as a Map', () => {
  const few = fc.constantFrom(0n, 1n, 1n << 32n, 0xffff_ffff_0000_0000n);
  const hashes = fc.array(fc.oneof(few, fc.bigInt({ min: 0n, max: (1n << 64n) - 1n })));
  fc.assert(
    fc.property(hashes, (all) => {
      const table = new HashTable();
      const model = new Map<bigint, number>();
      for (const [number, hash] of all.entries()) {
        const bytes = bytesOf(hash);
        expect(table.has(bytes, 0)).toBe(model.has(hash));
        if (!model.has(hash)) model.set(hash, number);
        expect(table.numberOf(bytes, 0, number)).toBe(model.get(hash));
        expect(table.size).toBe(model.size);
      }
    }),
  );
});

test('100,000 hashes, 16 per preferred slot, keep their numbers while the table grows', () => {
  const table = new HashTable();
  const hashAt = (index: number) => bytesOf((BigInt(index) << 32n) | BigInt(index - (index % 16)));
  for (let index = 0; index < 100_000; index += 1) table.numberOf(hashAt(index), 0, index);
  expect(table.size).toBe(100_000);
  for (let index = 0; index < 100_000; index += 1) {
    if (table.numberOf(hashAt(index), 0, 0) !== index) expect.fail(`the hash ${index} has another number`);
  }
});
