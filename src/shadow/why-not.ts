import { itemsOf, memberOf, parseJson } from '#base/parsed';
import { MemberScanner } from '#json';

/** Why a request was not copied although it was a turn of the shadow. */
const SKIPS = [
  'stored',
  'background',
  'follows_response',
  'runs_tools',
  'too_large',
  'gateway_busy',
  'primary_busy',
  'shadow_full',
] as const;

export type Skip = (typeof SKIPS)[number];

/** What is known of a request when it has been written to its first replica. */
export interface CopyFacts {
  /** Whether the engine keeps what this endpoint answers, unless it is told not to. */
  readonly keepsResponses: boolean;
  readonly hasPreviousResponse: boolean;
  readonly hasTools: boolean;
  readonly bodyBytes: number;
  /** Requests that wait for a replica with room, in all threads. */
  readonly waiting: number;
  readonly hasWaited: boolean;
  readonly isLoopBusy: boolean;
  /** Of the primary: what it has in flight, of how many at most; whether it fails, and whether its turns grow. */
  readonly inflight: number;
  readonly maxInflight: number | null;
  readonly isFailing: boolean;
  readonly isOnRamp: boolean;
}

/** Larger requests are not copied: to look through them takes time that clients would wait. */
const MAX_BODY_BYTES = 512 * 1024;

/** A primary that has more than this share of its `max_inflight` in flight is under pressure. */
const FULL_SHARE = 0.9;

/** Why a request is not copied, by what costs nothing to ask; null: nothing speaks against it so far. */
export function whyNotCopied(facts: CopyFacts): Skip | null {
  if (facts.hasPreviousResponse) return 'follows_response';
  if (facts.bodyBytes > MAX_BODY_BYTES) return 'too_large';
  if (facts.waiting > 0 || facts.hasWaited || facts.isLoopBusy) return 'gateway_busy';
  const isFull = facts.maxInflight !== null && facts.inflight > FULL_SHARE * facts.maxInflight;
  return isFull || facts.isFailing || facts.isOnRamp ? 'primary_busy' : null;
}

/** The members of a body that say whether it may be copied, and whether its answer can be compared byte for byte. */
const MEMBERS = [
  ...['store', 'background', 'previous_response_id', 'conversation', 'tools'],
  ...['temperature', 'seed', 'n'],
];

/** What the members of a body say. */
export interface BodyFacts {
  /** Why it is not copied; null: it may be. */
  readonly skip: Skip | null;
  /** Whether it asks for the same output each time: one choice, at temperature 0 or with a seed. */
  readonly asksSameOutput: boolean;
}

/** Reads a body. One that is not what it should be is not copied where that could matter. */
export function readBodyFacts(
  body: readonly Buffer[],
  endpoint: Pick<CopyFacts, 'keepsResponses' | 'hasTools'>,
): BodyFacts {
  const scanner = new MemberScanner({ members: MEMBERS, list: null, itemMembers: [] });
  for (const piece of body) scanner.push(piece);
  const read = (name: string) => parseJson(scanner.captured.get(name)?.toString() ?? 'null') ?? null;
  const asksForOne = (read('n') ?? 1) === 1;
  const isFixed = read('temperature') === 0 || typeof read('seed') === 'number';
  return { skip: findSkip(read, endpoint), asksSameOutput: asksForOne && isFixed };
}

function findSkip(
  read: (name: string) => unknown,
  { keepsResponses, hasTools }: Pick<CopyFacts, 'keepsResponses' | 'hasTools'>,
): Skip | null {
  const isOff = (value: unknown) => value === null || value === false;
  if (!isOff(read('background'))) return 'background';
  if (read('previous_response_id') !== null) return 'follows_response';
  if (!keepsResponses) return isOff(read('store')) ? null : 'stored';
  if (read('conversation') !== null) return 'follows_response';
  if (read('store') !== false) return 'stored';
  return hasTools && !areFunctions(read('tools')) ? 'runs_tools' : null;
}

/** Whether the client runs all of these tools: an engine that runs one itself would run it twice. */
function areFunctions(tools: unknown): boolean {
  if (!Array.isArray(tools)) return false;
  return itemsOf({ tools }, 'tools').every((tool) =>
    ['function', 'custom'].includes(String(memberOf(tool, 'type'))),
  );
}
