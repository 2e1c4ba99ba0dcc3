import { ModelRewriter } from '../../../../src/proxy/response/model-rewriter.ts';
import { type FuzzTarget, mustEqual, piecesOf } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';
import { mayBeMisread } from '../../misread-key.ts';

const ALIAS = 'gpt "4o" é';
const WORDS = ['model', 'model', 'response', 'message', 'id', 'm', 'choices', 'org/llama', 'modelx'];

/** What replaces the model's name in answers. */
export const MODEL_NAME: FuzzTarget = {
  name: 'model-name',
  reads: "answers to requests with an alias: the model's name, whole and in events",
  oracle: 'the answer, parsed, with those names replaced and nothing else; cuts change nothing',
  variants: 2,
  ciInputs: 20_000,
  generate(random, variant) {
    const texts = Array.from({ length: variant === 0 ? 1 : 1 + random.below(4) }, () =>
      jsonText(random, WORDS, 3),
    );
    if (variant === 0) return Buffer.from(texts.join(''));
    const end = random.pick(['\n\n', '\r\n\r\n', '\n\n', '\r\r']);
    return Buffer.from(texts.map((text) => `data: ${text.replaceAll(/[\r\n]/g, ' ')}${end}`).join(''));
  },
  check(input) {
    const { bytes, variant } = input;
    const whole = rewrite([bytes], variant);
    mustEqual(
      'the answer in pieces',
      rewrite(piecesOf(input), variant).toString('latin1'),
      whole.toString('latin1'),
    );
    if (mayBeMisread(bytes.toString('latin1'))) return false;
    if (variant === 1) return checkEvents(bytes, whole);
    const given = parse(bytes.toString());
    if (given === undefined) return false;
    mustEqual('the answer', parse(whole.toString()), replaceIn(given));
    return true;
  },
  read(input) {
    const rewriter = new ModelRewriter(ALIAS, input.variant === 1);
    for (const piece of piecesOf(input)) rewriter.rewrite([piece]);
    return rewriter;
  },
};

/** Only streams whose events are a line each, so that the lines can be compared. */
function checkEvents(given: Buffer, rewritten: Buffer): boolean {
  const before = given.toString().split(/\r\n|\r|\n/);
  const after = rewritten.toString().split(/\r\n|\r|\n/);
  mustEqual('the number of lines', after.length, before.length);
  if (!before.every((line, index) => line === '' || before[index + 1] === '')) return false;
  for (const [index, line] of before.entries()) {
    const value = parse(dataOf(line));
    if (value !== undefined) mustEqual('an event', parse(dataOf(after[index] ?? '')), replaceIn(value));
  }
  return true;
}

function dataOf(line: string): string {
  return /^data: (.*)$/.exec(line)?.[1] ?? '';
}

function rewrite(pieces: readonly Buffer[], variant: number): Buffer {
  const rewriter = new ModelRewriter(ALIAS, variant === 1);
  return Buffer.concat(pieces.flatMap((piece) => rewriter.rewrite([piece])));
}

function replaceIn(value: unknown, isHolder = true): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => {
      if (key === 'model' && typeof member === 'string') return [key, ALIAS];
      const isInner = isHolder && (key === 'response' || key === 'message');
      return [key, isInner ? replaceIn(member, false) : member];
    }),
  );
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ''));
  } catch {
    return undefined;
  }
}
