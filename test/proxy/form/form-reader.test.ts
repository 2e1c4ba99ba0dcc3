import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FORM_TYPE, type FormPart, formOf } from '#testkit/reading/form.ts';
import { runs } from '#testkit/runs.ts';
import { FormReader, FormSyntaxError } from '../../../src/proxy/form/form-reader.ts';

const part = (name: string, value: string | Uint8Array, filename?: string): FormPart =>
  filename === undefined ? { name, value } : { name, value, filename };
const FILE = part('file', Buffer.alloc(300, 'x'), 'a.wav');
const KIB = 1024;

/** What a form says, read in pieces of these sizes, in turn. */
function readForm(body: Buffer, sizes: readonly number[] = [body.length]) {
  const reader = new FormReader('boundary');
  try {
    for (let at = 0, i = 0; at < body.length; i++) {
      const size = sizes[i % sizes.length] ?? 1;
      reader.push(body.subarray(at, at + size));
      at += size;
    }
    reader.end();
  } catch (error) {
    if (error instanceof FormSyntaxError) return error.message;
    throw error;
  }
  return { model: reader.model, promptChars: reader.promptChars };
}

const headed = (...lines: string[]) =>
  Buffer.from(`--boundary\r\n${lines.join('\r\n')}\r\n\r\nm\r\n--boundary--`);
const named = (disposition: string) => headed(`Content-Disposition: ${disposition}`);

describe('a form', () => {
  test.each([
    ['before the file', [part('model', 'whisper'), FILE]],
    ['after the file', [FILE, part('model', 'whisper')]],
    ['among others', [part('stream', 'true'), part('model', 'whisper'), part('include[]', 'logprobs'), FILE]],
  ])('says its model %s', (_, parts) => {
    expect(readForm(formOf(parts))).toEqual({ model: 'whisper', promptChars: undefined });
  });

  test('says how many characters its prompt has', () => {
    const parts = [part('model', 'm'), part('prompt', 'aé😀'), FILE];
    expect(readForm(formOf(parts), [1])).toEqual({ model: 'm', promptChars: 3 });
    expect(readForm(formOf([part('prompt', ''), FILE]))).toEqual({ model: null, promptChars: 0 });
  });

  test.each([
    ['is empty', ''],
    ['is too long', 'x'.repeat(4 * KIB + 1)],
  ])('has no model if that %s', (_, value) => {
    expect(readForm(formOf([part('model', value), FILE]))).toMatchObject({ model: null });
  });

  test('reads the same, however it is cut', () => {
    const name = fc.constantFrom('file', 'prompt', 'x', 'Model', 'model[]');
    const value = fc.oneof(
      fc.uint8Array({ maxLength: 400 }),
      fc.string().map((text) => Buffer.from(text)),
      // What looks like a delimiter and is none.
      fc
        .constantFrom('\r\n--boundar', '\r\n--', '--boundary', '\r\n\r\n', '\r', '\n--boundary')
        .map((text) => Buffer.from(text)),
    );
    const other = fc.record({ name, value });
    const model = fc.string({ minLength: 1, maxLength: 20 }).filter((text) => text.isWellFormed());
    const sizes = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 6 });
    fc.assert(
      fc.property(fc.array(other), model, fc.array(other), sizes, (before, wanted, after, chunkSizes) => {
        const body = formOf([...before, part('model', wanted), ...after]);
        const whole = readForm(body);
        expect(whole).toMatchObject({ model: wanted });
        expect(readForm(body, chunkSizes)).toEqual(whole);
      }),
      { numRuns: runs(300) },
    );
  });

  test('has the model that Node reads in it, whatever was done to its bytes', async () => {
    const body = formOf([part('prompt', 'p'), FILE, part('model', 'whisper'), part('x', 'y')]);
    const edit = fc.record({
      at: fc.nat(body.length),
      cut: fc.nat(8),
      bytes: fc.oneof(
        fc.uint8Array({ maxLength: 4 }),
        fc
          .constantFrom('\r\n', '--', '"', '\\', ';', '--boundary', 'name="model"')
          .map((text) => Buffer.from(text)),
      ),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 3 }), async (edits) => {
        let edited = body;
        for (const { at, cut, bytes } of edits) {
          edited = Buffer.concat([edited.subarray(0, at), bytes, edited.subarray(at + cut)]);
        }
        const found = readForm(edited, [7]);
        expect(readForm(edited)).toEqual(found);
        if (typeof found === 'string') return;
        const headers = { 'Content-Type': FORM_TYPE };
        // Bytes that are not UTF-8 name no model here, and whichever they may at the replica.
        if (found.model === null) return;
        const data = await new Response(new Uint8Array(edited), { headers }).formData().catch(() => null);
        if (data !== null) expect(data.getAll('model')).toEqual([found.model]);
      }),
      { numRuns: runs(1500) },
    );
  });
});

describe('a form that parsers could read differently is refused:', () => {
  test.each([
    ['two models', formOf([part('model', 'a'), FILE, part('model', 'b')])],
    ['a model that is a file', formOf([part('model', 'a', 'a.txt')])],
    ['bytes before its boundary', Buffer.concat([Buffer.from('x\r\n'), formOf([FILE])])],
    ['no end', formOf([FILE]).subarray(0, -6)],
    ['nothing', Buffer.alloc(0)],
    ['another boundary', Buffer.from('--other\r\n\r\n--other--\r\n')],
    ['bytes after a boundary', Buffer.from('--boundary \r\n\r\n')],
    ['a part without a name', headed('Content-Type: text/plain')],
    ['a part without a head', Buffer.from('--boundary\r\n\r\n\r\n--boundary--')],
    [
      'two dispositions',
      headed(...['a', 'model'].map((name) => `Content-Disposition: form-data; name="${name}"`)),
    ],
    ['a folded line', headed('Content-Disposition: form-data;', ' name="model"')],
    ['a bare line feed', headed('X: y\nContent-Disposition: form-data; name="model"')],
    ['a colon after a space', headed('Content-Disposition : form-data; name="model"')],
    ['two names', named('form-data; name="a"; name="model"')],
    ['two names in different cases', named('form-data; name="a"; NAME="model"')],
    ['an extended name', named(`form-data; name="a"; name*=utf-8''model`)],
    ['an escape in a name', named('form-data; name="mod\\el"')],
    ['an escaped quotation mark', named('form-data; filename="a\\"; name="model"')],
    ['an open quotation mark', named('form-data; name="model')],
    ['another disposition', named('attachment; name="model"')],
    ['a name in pieces', named('form-data; name="a"; name*0="mod"; name*1="el"')],
    ['parameters inside quotation marks', named('form-data; a="; name=model; b="; name="x"')],
    ['a semicolon in the name of a file', named('form-data; name="x"; filename="a; name=model"')],
    ['an equals sign in a name', named('form-data; name="a=model"')],
    ['a name after the name of a file', named('form-data; filename="a name=model"; name="x"')],
    ['an extended name of a file without a plain one', named('form-data; name="x"; filename*=utf-8\'\'a')],
    ['an extended name of a file in another charset', named("form-data; name=x; filename=a; filename*=x''a")],
    ['an extended name of a file in pieces', named('form-data; name=x; filename=a; filename*0="b"')],
    ['a file whose name is empty', named('form-data; name="x"; filename=""')],
    ['a parameter that has no meaning', named('form-data; name="x"; a=b')],
    ['a parameter in capitals', named('form-data; NAME="model"')],
    ['a space before a semicolon', named('form-data ; name="model"')],
    ['a semicolon at the end', named('form-data; name="model";')],
    [
      'a part in base64',
      headed('Content-Disposition: form-data; name=x', 'Content-Transfer-Encoding: base64'),
    ],
    [
      'text in UTF-7',
      headed('Content-Disposition: form-data; name=x', 'Content-Type: text/plain; charset=utf-7'),
    ],
    ['a charset for all parts', formOf([part('_charset_', 'utf-7'), FILE])],
    ['a model that is not UTF-8', formOf([part('model', Buffer.from([0x6d, 0xff])), FILE])],
    [
      'a model in latin-1',
      Buffer.from(
        '--boundary\r\nContent-Type: text/plain; charset=ISO-8859-1\r\n' +
          'Content-Disposition: form-data; name="model"\r\n\r\né\r\n--boundary--',
      ),
    ],
    ['no parts', Buffer.from('--boundary--\r\n')],
    ['a part after its end', Buffer.concat([formOf([FILE]), formOf([part('model', 'm')])])],
    ['a byte after its end', Buffer.concat([formOf([FILE]), Buffer.from('\n')])],
    ['half a line end after its end', formOf([FILE]).subarray(0, -1)],
    ['a head of 9 KiB', named(`form-data; name="${'x'.repeat(9 * KIB)}"`)],
    ['heads of 70 KiB', formOf(Array.from({ length: 10 }, () => part('y'.repeat(7 * KIB), '')))],
  ])('%s', (_, body) => {
    expect(readForm(body)).toEqual(expect.any(String));
    expect(readForm(body, [1])).toEqual(readForm(body));
  });

  test.each([
    ['undici and httpx', 'form-data; name="model"'],
    ['.NET', 'form-data; name=model', 'Content-Type: text/plain; charset=utf-8'],
    ['Apache HttpClient', 'form-data; name="model"', 'Content-Type: text/plain; charset=ISO-8859-1'],
    ['OkHttp', 'form-data; name="model"', 'Content-Transfer-Encoding: binary', 'Content-Length: 1'],
  ])('but not the model as %s write it', (_, disposition, ...lines) => {
    const model = { model: 'm' };
    expect(readForm(headed(...lines, `Content-Disposition: ${disposition}`))).toMatchObject(model);
    expect(readForm(headed(`Content-Disposition: ${disposition}`, ...lines), [1])).toMatchObject(model);
  });

  test.each([
    ['curl', 'form-data; name="file"; filename="a b.wav"'],
    ['undici, of a name with quotation marks', 'form-data; name="file"; filename="%22a%22.wav"'],
    ['browsers', 'form-data; name="file"; filename="é=1.wav"'],
    ['Windows', 'form-data; name="file"; filename="C:\\audio\\a.wav"'],
    ['.NET', "form-data; name=file; filename=a.wav; filename*=utf-8''%C3%A9.wav"],
    ['Apache HttpClient', 'form-data; name="file"; filename="?.wav"; filename*="UTF-8\'\'%C3%A9.wav"'],
  ])('but not the file as %s writes it', (_, disposition) => {
    const file = `Content-Disposition: ${disposition}\r\nContent-Type: audio/ogg; codecs=opus`;
    const rest = formOf([part('model', 'm')]);
    const body = Buffer.concat([Buffer.from(`--boundary\r\n${file}\r\n\r\nx\r\n`), rest]);
    expect(readForm(body)).toMatchObject({ model: 'm' });
  });

  test('but not one whose last line has no end', () => {
    expect(readForm(formOf([part('model', 'm'), FILE]).subarray(0, -2))).toMatchObject({ model: 'm' });
  });
});
