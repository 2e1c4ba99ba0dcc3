import { FORM_TYPE, formOf } from '#testkit/reading/form.ts';
import { FormReader, FormSyntaxError } from '../../../../src/proxy/form/form-reader.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual, piecesOf } from '../../fuzz-target.ts';

const NAMES = ['model', 'model', 'prompt', 'file', 'Model', 'model[]', 'x', 'stream'];
const VALUES = [
  ...['whisper', 'a', '', 'aé😀', '\r\n--boundar', '\r\n--', '--boundary', '\r\n\r\n', '\r', 'x'.repeat(100)],
  ...['\r\n--boundary-', 'Content-Disposition: form-data; name="model"', '--boundary--'],
];
const HEADS = [
  'Content-Disposition: form-data; name=model',
  'content-disposition: form-data; name="model"; filename="a"',
  'Content-Disposition: form-data; filename="a;name=model"; name="x"',
  "Content-Disposition: form-data; name*=utf-8''model",
  'X: y\r\nContent-Disposition: form-data; name="model"\r\nContent-Type: text/plain',
];

/** The reader of forms. */
export const FORM: FuzzTarget = {
  name: 'form',
  reads: 'forms (multipart/form-data): the name of the model, and the length of the prompt',
  oracle: "Node's own parser finds the same model in what it can read; cuts change nothing",
  variants: 1,
  ciInputs: 10_000,
  generate(random) {
    const parts = Array.from({ length: random.below(5) }, () => ({
      name: random.pick(NAMES),
      value: random.pick(VALUES),
      ...(random.chance(20) ? { filename: random.pick(['a.wav', 'C:\\a', 'model', 'é']) } : {}),
    }));
    const form = formOf(parts);
    return random.chance(25) ? Buffer.concat([rawPart(random), form]) : form;
  },
  async check(input) {
    const { bytes } = input;
    const whole = read([bytes]);
    mustEqual('what a form says in pieces', read(piecesOf(input)), whole);
    if (whole === null) return false;
    if (whole.model === null) return true;
    const { start, end } = whole.modelSpan;
    mustEqual('the bytes of the model', bytes.toString('utf8', start, end), whole.model);
    const form = new Response(new Uint8Array(bytes), { headers: { 'Content-Type': FORM_TYPE } });
    const data = await form.formData().catch(() => null);
    if (data !== null) mustEqual('the model', data.getAll('model'), [whole.model]);
    must(whole.model !== '', 'an empty name is a model');
    return true;
  },
  read: (input) => readForm(piecesOf(input)),
};

function rawPart(random: Random): Buffer {
  return Buffer.from(`--boundary\r\n${random.pick(HEADS)}\r\n\r\n${random.pick(VALUES)}\r\n`);
}

function read(pieces: readonly Buffer[]): Pick<FormReader, 'model' | 'modelSpan' | 'promptChars'> | null {
  const reader = readForm(pieces);
  if (reader === null) return null;
  const { model, modelSpan, promptChars } = reader;
  return { model, modelSpan, promptChars };
}

/** Null: it is refused. */
function readForm(pieces: readonly Buffer[]): FormReader | null {
  const reader = new FormReader('boundary');
  try {
    for (const piece of pieces) {
      const copy = Buffer.from(piece);
      reader.push(copy);
      copy.fill('-');
    }
    reader.end();
    return reader;
  } catch (error) {
    if (error instanceof FormSyntaxError) return null;
    throw error;
  }
}
