import type { Disk } from '../engine/disk.ts';
import { STATE_DIR } from './actors/configure.ts';
import type { Chronicle } from './checks/chronicle.ts';
import { readTraces } from './checks/exported-spans.ts';

const NAME = /^records.*\.jsonl$/;

/** Reads the records and ledger spans that a gateway has written to files. */
export function readRecordFiles(disk: Disk, chronicle: Chronicle): void {
  if (disk.find(STATE_DIR) === null) return;
  for (const name of disk.list(STATE_DIR).filter((each) => NAME.test(each))) {
    const text = disk.getFile(`${STATE_DIR}/${name}`, 'open').content.toString();
    // The process may have ended within a line.
    for (const line of text.split('\n').slice(0, -1)) {
      const { records, ledgers } = readTraces(JSON.parse(line));
      for (const record of records) chronicle.onCollected(record);
      for (const ledger of ledgers) chronicle.onLedger(ledger);
    }
  }
}
