import { explainFileCode } from '#base';

const WORDS: Readonly<Record<string, string>> = {
  locked: 'another process uses it',
  read_only: 'it is read-only',
  io_error: 'the disk fails',
  full: 'the disk is full',
  damaged: 'it is damaged',
  deleted: 'it was deleted',
  replaced: 'another file is in its place',
  cannot_open: 'it cannot be opened',
  not_a_history: 'it is something else than a history',
  thread_ended: 'its thread has ended by an error',
  ended: 'its thread has ended by an error',
  too_slow: 'it takes too long',
  busy: 'it answers too many queries already',
};

/** Why the history does not write or answer, or was set aside, in words. A code of the system is in them. */
export function toProblemText(reason: string): string {
  const version = /^version_(\d+)$/.exec(reason)?.[1];
  if (version !== undefined) return `it is of version ${version}`;
  return Object.hasOwn(WORDS, reason) ? `${WORDS[reason]}` : explainFileCode(reason);
}
