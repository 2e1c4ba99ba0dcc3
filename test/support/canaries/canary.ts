import { createHash } from 'node:crypto';

/**
 * Stands where no text may be kept. Lower-case letters only, so that no cleaning changes it and no format has to escape
 * it; letters that no word has side by side, so that 8 of them are enough to know it by.
 */
export const CANARY = 'canaryqzxwvkjpmtfgh';

const PART_CHARS = 8;

/** What somebody would find who looks for the text, whole or cut, in the ways in which programs write texts. */
const FORMS: ReadonlyMap<string, string> = new Map(
  [
    ['the first characters', CANARY.slice(0, PART_CHARS)],
    ['the last characters', CANARY.slice(-PART_CHARS)],
  ].flatMap(([part = '', text = '']) =>
    toForms(text).map(([how, form]) => [form, `${part}, ${how}`] as const),
  ),
);

/** Digests that need no salt: with them, a guessed text could be confirmed. */
const DIGESTS: ReadonlyMap<string, string> = new Map(
  ['md5', 'sha1', 'sha256', 'sha512'].flatMap((algorithm) => {
    const digest = createHash(algorithm).update(CANARY).digest();
    // Shortened digests confirm a guess as well.
    const forms = [digest.toString('hex').slice(0, 16), digest.toString('base64').slice(0, 11)];
    return forms.map((form) => [form, algorithm] as const);
  }),
);

/** The forms of the canary that this text has, each with what is around it; none if it has no part of the canary. */
export function findCanary(text: string): readonly string[] {
  return [...FORMS, ...DIGESTS].flatMap(([form, name]) => {
    const at = text.indexOf(form);
    return at === -1 ? [] : [`${name}: ${text.slice(Math.max(0, at - 80), at + form.length + 80)}`];
  });
}

/** A text of ASCII in all the ways in which it may be written, by name. */
function toForms(text: string): readonly (readonly [how: string, form: string])[] {
  const bytes = Buffer.from(text);
  const each = (write: (byte: number) => string, between = '') => [...bytes].map(write).join(between);
  const toHex = (byte: number) => byte.toString(16).padStart(2, '0');
  return [
    ['as it is, or in JSON', text],
    ['in upper case', text.toUpperCase()],
    ['backwards', [...text].reverse().join('')],
    ['hexadecimal', bytes.toString('hex')],
    ['hexadecimal in upper case', bytes.toString('hex').toUpperCase()],
    ['percent-encoded', each((byte) => `%${toHex(byte)}`)],
    ['percent-encoded in upper case', each((byte) => `%${toHex(byte).toUpperCase()}`)],
    ['in escapes of JSON', each((byte) => `\\u00${toHex(byte)}`)],
    ['as numbers', each(String, ',')],
    ['as numbers in lines', each(String, ', ')],
    ['in UTF-16', bytes.toString('latin1').split('').join('\0')],
    ...toBase64Forms(bytes),
  ];
}

/** Base64 and base64url write letters alike. Where the text begins decides about the characters, and about the outer ones. */
function toBase64Forms(bytes: Buffer): readonly (readonly [string, string])[] {
  return [0, 1, 2].map((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const ownBits = (before + bytes.length) * 8;
    const form = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(ownBits / 6));
    return [`base64 from byte ${before}`, form] as const;
  });
}
