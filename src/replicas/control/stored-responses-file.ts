import { join } from 'node:path';
import type { Log } from '#otel/base';
import {
  MAX_AGE_SECONDS,
  PRINTED_CHARS,
  parseResponse,
  printResponse,
  type StoredResponses,
} from '#replicas/stored-responses';
import { createStateFile, type Parsed } from '#state-dir';

const FILE_NAME = 'responses.txt';
const LINE = new RegExp(`^([0-9a-f]{${PRINTED_CHARS}}) ([0-9]{1,13})$`);

/** The file `state_dir/responses.txt`: the stored responses that a gateway knew when it stopped. */
export interface StoredResponsesFile {
  /** Has the table know what the file says. Rejects with the system's error. */
  restore(): Promise<void>;
  /** Resolves when what the table knows is on disk. Rejects with the system's error. */
  save(): Promise<void>;
}

/** Gives access to the file, which is written once there is a response to keep. */
export function createStoredResponsesFile(
  stateDir: string,
  table: Pick<StoredResponses, 'entries' | 'learn'>,
  log: Log<'error'>,
  epochMs: () => number = Date.now,
): StoredResponsesFile {
  const file = createStateFile<readonly Entry[]>(join(stateDir, FILE_NAME), log);
  return {
    async restore() {
      const nowSeconds = toSeconds(epochMs());
      const { value } = await file.read(parseEntries);
      for (const { printed, usedAt } of value ?? []) {
        // The time of day may have been set back.
        const idleSeconds = Math.max(0, nowSeconds - usedAt);
        if (idleSeconds <= MAX_AGE_SECONDS) table.learn(parseResponse(printed, 0), idleSeconds);
      }
    },
    async save() {
      const nowSeconds = toSeconds(epochMs());
      const lines = table
        .entries()
        .map(({ response, idleSeconds }) => `${printResponse(response)} ${nowSeconds - idleSeconds}\n`);
      if (lines.length > 0) await file.write(lines.join(''));
    },
  };
}

interface Entry {
  readonly printed: string;
  /** Seconds since 1970. */
  readonly usedAt: number;
}

function parseEntries(text: string): Parsed<readonly Entry[]> {
  const value: Entry[] = [];
  const unreadable: string[] = [];
  for (const line of text.split('\n')) {
    const [, printed, usedAt] = LINE.exec(line) ?? [];
    if (printed !== undefined) value.push({ printed, usedAt: Number(usedAt) });
    else if (line !== '') unreadable.push(line);
  }
  return { value, unreadable };
}

function toSeconds(ms: number): number {
  return Math.floor(ms / 1000);
}
