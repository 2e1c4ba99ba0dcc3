import { toPieces } from '../answers.ts';
import { statusOf } from '../http-reader.ts';
import { type ClientView, describe, isFromReplica, type Served } from './facts.ts';

/** The statuses of the gateway's own answers to requests that are well formed. 500 would be a defect. */
const OWN_STATUSES: ReadonlySet<number> = new Set([408, 502, 503, 504]);

/** The end of a stream that broke off: an event of the gateway's own, after the end of the line that was cut. */
const ERROR_EVENT = /\n{0,2}data: \{"error":[^\n]*\}\n\n(data: \[DONE\]\n\n)?$/;

/** Compares what a client got with what replicas made of its request. Returns what is wrong with it, or null. */
export function checkResponse(view: ClientView, own: readonly Served[]): string | null {
  const { response } = view;
  if (response === null) return null;
  const status = statusOf(response);
  if (!isFromReplica(response)) {
    return OWN_STATUSES.has(status) ? null : `an answer that no replica made: ${describe(view)}`;
  }
  const mark = response.fields.get('x-answer');
  const served = own.find(({ plan, attempt }) => `${plan.id}#${attempt}` === mark);
  if (served === undefined) return `the answer to another request: ${describe(view)} ${mark}`;
  if (response.fields.get('x-request-id') !== served.requestId)
    return `another X-Request-Id: ${describe(view)}`;
  if (status !== served.answer.status)
    return `another status than the replica's ${served.answer.status}: ${describe(view)}`;
  return checkBody(view, response.body, response.isComplete, served);
}

/** The body that a client gets of an answer. */
function toClientBody({ plan, answer, asksUsage }: Served): Buffer {
  const pieces = toPieces(plan.id, answer, asksUsage).filter(({ isUsage }) => !isUsage || plan.asksUsage);
  return Buffer.concat(pieces.map(({ bytes }) => bytes));
}

/** Whether a client has got all that a replica has made for it. */
export function isWhole({ response }: ClientView, served: Served): boolean {
  return response?.isComplete === true && response.body.equals(toClientBody(served));
}

function checkBody(view: ClientView, body: Buffer, isComplete: boolean, served: Served): string | null {
  const { answer } = served;
  const expected = toClientBody(served);
  const isPrefix = expected.subarray(0, body.length).equals(body);
  if (isPrefix && (!isComplete || body.length === expected.length)) return null;
  const { breakAt, framing, kind } = answer;
  // Nobody can tell that a response which ends with its connection was meant to be longer.
  if (breakAt?.how !== 'reset' && framing === 'close' && (isPrefix || isCutInUsage(body, served)))
    return null;
  if (kind === 'stream') {
    const event = ERROR_EVENT.exec(body.toString());
    const before = event === null ? null : body.subarray(0, event.index);
    if (
      before !== null &&
      expected.subarray(0, before.length).equals(before) &&
      before.length < expected.length
    )
      return null;
  }
  return `other bytes than the replica's: ${describe(view)}, expected ${expected.length} bytes: ${excerpt(body, expected)}`;
}

/**
 * Whether the answer ended within the usage that the gateway had asked for: a part of an event tells not what it is, and
 * is relayed as it came.
 */
function isCutInUsage(body: Buffer, { plan, answer, asksUsage }: Served): boolean {
  const pieces = toPieces(plan.id, answer, asksUsage);
  const usage = pieces.findIndex(({ isUsage }) => isUsage);
  if (usage === -1) return false;
  const before = Buffer.concat(pieces.slice(0, usage).map(({ bytes }) => bytes));
  const rest = body.subarray(before.length);
  const whole = pieces[usage]?.bytes ?? Buffer.alloc(0);
  return (
    body.subarray(0, before.length).equals(before) &&
    rest.length < whole.length &&
    whole.subarray(0, rest.length).equals(rest)
  );
}

function excerpt(body: Buffer, expected: Buffer): string {
  let at = 0;
  while (at < body.length && body[at] === expected[at]) at++;
  const show = (bytes: Buffer) => JSON.stringify(bytes.subarray(Math.max(0, at - 20), at + 40).toString());
  return `from byte ${at}: ${show(body)} instead of ${show(expected)}`;
}

/** Longer prompts may take longer than the time-outs where each read returns a byte. */
const SHORT_PROMPT_CHARS = 1_000;

/** Where nothing stalls, no request is too slow that was written at once. Returns what is wrong, or null. */
export function checkPatience(view: ClientView): string | null {
  const { response, plan } = view;
  if (response === null || plan.promptChars > SHORT_PROMPT_CHARS || statusOf(response) !== 408) return null;
  return `a request that came in time is too slow: ${describe(view)}`;
}

/** A reload may shorten the time for the first byte to this. */
const SHORTEST_FIRST_BYTE_MS = 400;

/**
 * In a world without faults of machines and connections, a client that stays gets all that its replica has made. Returns
 * what it lacks, or null.
 */
export function checkDelivery(view: ClientView, served: readonly Served[]): string | null {
  const { response, plan, hasLeft, isPrompt } = view;
  const isFine = ({ answer, end }: Served) =>
    end === 'complete' &&
    answer.breakAt === null &&
    !answer.isSilent &&
    answer.firstMs < SHORTEST_FIRST_BYTE_MS;
  const [first] = served;
  // To the gateway, a client that has closed its side has left.
  const mayLeave = hasLeft || plan.halfCloses || plan.leavesAfterBytes !== null;
  if (mayLeave || !isPrompt || first === undefined || !served.every(isFine)) return null;
  if (served.length > 1) return `the replicas get it ${served.length} times: ${describe(view)}`;
  return response !== null && isWhole(view, first)
    ? null
    : `not all of the answer of ${first.answer.status}: ${describe(view)}`;
}
