import { randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { toRandom } from '#testkit/random.ts';
import { runs } from '#testkit/runs.ts';
import { FRAME_BYTES, FRAME_RECORDS, FrameWriter, readFrames } from '../../src/history/record-frame.ts';

const MIB = 1024 ** 2;
const LENGTHS = [1, 40, 1_300, 3_400, 70_000, 200_000, FRAME_BYTES, FRAME_BYTES + 1, MIB];

it('keeps each record as it was until its frame is given back, whatever comes after it', () => {
  const random = toRandom(34);
  const pick = (count: number) => Math.floor(random() * count);
  const frames = new FrameWriter();
  const source = randomBytes(3 * MIB);
  let added: Uint8Array[] = [];
  const away: { readonly bytes: Uint8Array<ArrayBuffer>; readonly records: readonly Uint8Array[] }[] = [];
  const seen = new Set<ArrayBuffer>();
  let [reused, copied] = [0, 0];
  const take = () => {
    const frame = frames.take();
    expect(frame?.count).toBe(added.length === 0 ? undefined : added.length);
    if (frame === null) return;
    const { buffer } = frame.bytes;
    if (seen.has(buffer)) reused += 1;
    else if (buffer.byteLength === frame.bytes.byteLength) copied += 1;
    expect(away.some(({ bytes }) => bytes.buffer === buffer)).toBe(false);
    seen.add(buffer);
    away.push({ bytes: frame.bytes, records: added });
    added = [];
  };
  for (let step = 0; step < runs(2_000); step++) {
    const start = pick(MIB);
    const record = source.subarray(start, start + (LENGTHS[Math.floor(random() ** 3 * LENGTHS.length)] ?? 0));
    if (!frames.hasRoom(record.length)) take();
    frames.add(record);
    added.push(record);
    expect(frames.isFull).toBe(added.length === FRAME_RECORDS);
    if (pick(200) === 0) take();
    if (pick(300) === 0) frames.trim();
    while (away.length > pick(8)) {
      for (const { bytes, records } of away.splice(pick(away.length), 1)) {
        expect(Buffer.concat(readFrames(bytes)).equals(Buffer.concat(records))).toBe(true);
        expect(readFrames(bytes).map(({ length }) => length)).toEqual(records.map(({ length }) => length));
        frames.reuse([bytes.buffer]);
      }
    }
  }
  expect(reused).toBeGreaterThan(0);
  expect(copied).toBeGreaterThan(0);
});
