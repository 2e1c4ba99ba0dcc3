import { readCapture } from '../reading/captures.ts';

/** Members of each chunk; llama.cpp takes the time again for each. */
const IN_EACH_CHUNK = [/"id":"chatcmpl-[^"]*"/g, /"created":\d+/g];
/** What differs between two answers to the same request: measured times, and ids of tool calls. */
const ACCIDENTS = [/"timings":\{[^}]*\}/g, /"id":"(?!chatcmpl-)[^"]*"/g];

export interface CapturedPair {
  readonly asked: string;
  readonly unasked: string;
}

/**
 * A captured pair of answers, with and without usage. The second gets the ids, times and measurements of the first, so
 * that the remaining difference is the effect of asking for usage.
 *
 * @throws {Error} if one of the two has more of these than the other: they are no pair
 */
export function alignedCapture(askedName: string, unaskedName: string): CapturedPair {
  let asked = readCapture(askedName).body.toString('utf8');
  let unasked = readCapture(unaskedName).body.toString('utf8');
  for (const member of IN_EACH_CHUNK) {
    const first = new RegExp(member).exec(asked)?.[0] ?? '';
    asked = asked.replaceAll(member, () => first);
    unasked = unasked.replaceAll(member, () => first);
  }
  for (const accident of ACCIDENTS) unasked = takeOver(accident, asked, unasked);
  return { asked, unasked };
}

/** Completions of llama.cpp always have usage: these figures are taken over, too. */
export function alignedWithUsage(askedName: string, unaskedName: string): CapturedPair {
  const pair = alignedCapture(askedName, unaskedName);
  return { ...pair, unasked: takeOver(/"usage":\{.*?\}\}/g, pair.asked, pair.unasked) };
}

function takeOver(what: RegExp, from: string, into: string): string {
  const found = [...from.matchAll(what)].map(([text]) => text);
  const places = [...into.matchAll(what)].length;
  if (found.length !== places) throw new Error(`not a pair: ${found.length} and ${places} of ${what}`);
  return into.replaceAll(what, () => found.shift() ?? '');
}
