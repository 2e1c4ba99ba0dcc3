import type { Form, OurReading, PeerReading, ReadPart } from './form.ts';

/**
 * What became of a form. `split`: the gateway refuses it, and the peers read it in different ways, or only some of them
 * do. `peer_refused`: the gateway accepts it and a peer does not, so that the client gets an error.
 */
export type Verdict = 'alike' | 'peer_refused' | 'refused' | 'split';

/** The verdict on a form, and what is wrong; null: nothing. */
export interface Comparison {
  readonly verdict: Verdict;
  readonly difference: string | null;
}

/** Names of files that parsers may unescape in their own ways. The gateway does not read them. */
const ESCAPED_NAMES = /\\|filename\*|filename="[^"]*=/;
/** The gateway takes a longer model for none. */
const MAX_MODEL_BYTES = 4 * 1024;

/** Compares the readings of one form. What the gateway accepts, all peers that accept it must read like the gateway. */
export function compare(form: Form, ours: OurReading, peers: ReadonlyMap<string, PeerReading>): Comparison {
  const accepted = [...peers].flatMap(([name, parts]) => (parts === null ? [] : [{ name, parts }]));
  const comparesNames = !ESCAPED_NAMES.test(Buffer.concat(form.pieces).toString('latin1'));
  const texts = accepted.map(({ parts }) => toText(parts, comparesNames));
  const areEqual = texts.every((text) => text === texts[0]);
  if (ours === null) {
    const isSplit = !areEqual || (accepted.length > 0 && accepted.length < peers.size);
    return { verdict: isSplit ? 'split' : 'refused', difference: null };
  }
  const verdict = accepted.length === peers.size ? 'alike' : 'peer_refused';
  for (const { name, parts } of accepted) {
    const difference = differenceOf(ours, parts);
    if (difference !== null) return { verdict, difference: `${name} reads ${difference}` };
  }
  return { verdict, difference: areEqual ? null : `the peers read different parts:\n${texts.join('\n')}` };
}

function differenceOf(ours: NonNullable<OurReading>, parts: readonly ReadPart[]): string | null {
  const models = parts.filter(({ name }) => name === 'model');
  const prompts = parts.filter(({ name }) => name === 'prompt');
  const [model] = models;
  if (models.length > 1) return 'several models';
  if (model !== undefined && model.filename !== null) return 'a model that is a file';
  const value = model?.content ?? '';
  const read = Buffer.byteLength(value) > MAX_MODEL_BYTES || value === '' ? null : value;
  if (read !== ours.model) return `the model ${JSON.stringify(read)} and not ${JSON.stringify(ours.model)}`;
  if (prompts.length > 0 !== (ours.promptChars !== undefined)) return 'another number of prompts';
  return null;
}

function toText(parts: readonly ReadPart[], comparesNames: boolean): string {
  return JSON.stringify(
    parts.map(({ name, filename, content }) => [
      name,
      filename === null || comparesNames ? filename : '',
      content,
    ]),
  );
}
