import { join } from 'node:path';
import { isObject, parseJson } from '#base/parsed';
import type { Log } from '#otel/base';
import type { HttpFacts } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import type { ParkedSpan } from '#otel/span';
import { createStateFile, type OnStateWrite, type Parsed, type StateFile } from '#state-dir';

const FILE_NAME = 'background.json';
const RESPONSE_ID = /^[!-~]{1,256}$/;

/** A response that is followed, as it is kept: without any text. */
export interface StoredResponse {
  /** The name of the replica, and its url. */
  readonly replica: string;
  readonly url: string;
  readonly id: string;
  readonly record: RequestRecord;
  readonly http: HttpFacts;
  readonly span: ParkedSpan;
  /** Whose budgets it uses. */
  readonly limits: readonly string[];
  /** What these were charged for it. */
  readonly chargedTokens: number;
}

/** Responses that may go on and cannot be followed. */
export interface StoredUnfollowed {
  readonly replica: string;
  readonly url: string;
  readonly count: number;
  /** From then on they count no more. */
  readonly untilEpochMs: number;
}

/** What the file holds. */
export interface StoredBackground {
  readonly responses: readonly StoredResponse[];
  readonly unfollowed: readonly StoredUnfollowed[];
}

/** Creates the access to the file, which exists once something is stored. */
export function createBackgroundFile(
  stateDir: string,
  log: Log<'error'>,
  onWrite?: OnStateWrite,
): StateFile<StoredBackground> {
  return createStateFile(join(stateDir, FILE_NAME), log, onWrite);
}

/** The content of the file. `responses`: each as JSON. */
export function printBackground(
  responses: readonly string[],
  unfollowed: readonly StoredUnfollowed[],
): string {
  return `{"version":1,"responses":[${responses.join(',')}],"unfollowed":${JSON.stringify(unfollowed)}}\n`;
}

/** Parses the file; null if nothing of it is legible. */
export function parseBackground(text: string): Parsed<StoredBackground> | null {
  const stored = parseJson(text);
  if (!isObject(stored) || stored.version !== 1 || !Array.isArray(stored.responses)) return null;
  const unfollowed = Array.isArray(stored.unfollowed) ? stored.unfollowed : [];
  const unreadable = stored.responses.filter((each) => !isStoredResponse(each)).map(toName);
  const value = {
    responses: stored.responses.filter(isStoredResponse),
    unfollowed: unfollowed.filter(isStoredUnfollowed),
  };
  return { value, unreadable };
}

function toName(stored: unknown): string {
  return isObject(stored) ? `a response of ${String(stored.replica)}` : 'a response';
}

function isStoredResponse(value: unknown): value is StoredResponse {
  if (!isObject(value) || !isServer(value)) return false;
  const { id, record, http, span, limits, chargedTokens } = value;
  return (
    typeof id === 'string' &&
    RESPONSE_ID.test(id) &&
    isRecord(record) &&
    isObject(http) &&
    isSpan(span) &&
    Array.isArray(limits) &&
    limits.every((name) => typeof name === 'string') &&
    Number.isFinite(chargedTokens)
  );
}

function isRecord(value: unknown): boolean {
  return isObject(value) && typeof value.trace_id === 'string' && Number.isFinite(value.e2e_ms);
}

function isSpan(value: unknown): boolean {
  return (
    isObject(value) && isObject(value.start) && isObject(value.ids) && Number.isFinite(value.startedEpochMs)
  );
}

function isStoredUnfollowed(value: unknown): value is StoredUnfollowed {
  if (!isObject(value) || !isServer(value)) return false;
  return Number.isSafeInteger(value.count) && Number(value.count) > 0 && Number.isFinite(value.untilEpochMs);
}

function isServer({ replica, url }: Readonly<Record<string, unknown>>): boolean {
  return typeof replica === 'string' && typeof url === 'string';
}
