import { postBytes } from '../../raw-http.ts';
import { FORM_TYPE, type FormPart, formOf } from '../../reading/form.ts';
import { sendBytes } from '../exchange.ts';
import { inFile, inKey, type Limit, testedBy } from '../limit.ts';
import type { World } from '../world.ts';

const MODEL: FormPart = { name: 'model', value: 'm' };
const AUDIO = '/v1/audio/transcriptions';

function sendForm(world: World, parts: readonly FormPart[]): Promise<string> {
  const bytes = postBytes(AUDIO, formOf(parts), [`Content-Type: ${FORM_TYPE}`]);
  return sendBytes(world, bytes, { endpoints: ['audio/transcriptions'] });
}

/** Forms with audio. */
export const FORMS: readonly Limit[] = [
  {
    what: 'what is held of a form until its model is known',
    source: inKey('limits.before_model'),
    past: '400 `late_model`',
    proof: testedBy(
      'test/gateway/endpoints/audio.test.ts',
      'if it names no model, or too late, and several are served',
    ),
  },
  {
    what: "a model's name in a form",
    source: inFile('src/proxy/form/form-reader.ts', 'MAX_MODEL_BYTES'),
    past: 'as if it named none: 400 `missing_model`, or the only model served',
    proof: {
      send: (size, world) => sendForm(world, [{ name: 'model', value: 'm'.repeat(size) }]),
      at: '404 model_not_found',
      past: '200',
    },
  },
  {
    what: 'the head of a part of a form',
    source: inFile('src/proxy/form/form-reader.ts', 'MAX_HEAD_BYTES'),
    past: '400 `invalid_form`',
    proof: {
      send: (size, world) => {
        const head = 'Content-Disposition: form-data; name=""';
        return sendForm(world, [MODEL, { name: 'n'.repeat(size - head.length), value: 'x' }]);
      },
      at: '200',
      past: '400 invalid_form',
    },
  },
  {
    what: 'all heads of parts of a form',
    source: inFile('src/proxy/form/form-reader.ts', 'MAX_ALL_HEADS_BYTES'),
    past: '400 `invalid_form`',
    proof: {
      send: (size, world) => {
        const head = 'Content-Disposition: form-data; name=""';
        const left = size - (`${head}model`.length + 15 * 4096);
        const parts = [...Array(15).fill(4096), left].map((each) => ({
          name: 'n'.repeat(each - head.length),
          value: 'x',
        }));
        return sendForm(world, [MODEL, ...parts]);
      },
      at: '200',
      past: '400 invalid_form',
    },
  },
];
