import { createHash } from 'node:crypto';

/**
 * Stands where no text may be kept. Lower-case letters only, so that no cleaning changes it and no format has to escape
 * it; letters that no word has side by side, so that 8 of them are enough to know it by.
 */
export const CANARY = 'canaryqzxwvkjpmtfgh';

const PART_CHARS = 8;

/**
 * Creates the search for a secret of ASCII, whole or cut, in the ways in which programs write texts. Its first and its
 * last 8 characters must be enough to know it by. What is found comes with what is around it.
 */
export function createSearch(secret: string): (text: string) => readonly string[] {
  const parts = [
    ['the first characters', secret.slice(0, PART_CHARS)],
    ['the last characters', secret.slice(-PART_CHARS)],
  ] as const;
  const forms = parts.flatMap(([part, text]) =>
    toForms(text).map(([how, form]) => [form, `${part}, ${how}`] as const),
  );
  const all = new Map([...forms, ...toDigests(secret)]);
  return (text) =>
    [...all].flatMap(([form, name]) => {
      const at = text.indexOf(form);
      return at === -1 ? [] : [`${name}: ${text.slice(Math.max(0, at - 80), at + form.length + 80)}`];
    });
}

/** The forms of the canary that a text has; none if it has no part of the canary. */
export const findCanary = createSearch(CANARY);

/** Digests that need no salt: with them, a guessed text could be confirmed. */
function toDigests(secret: string): readonly (readonly [form: string, algorithm: string])[] {
  return ['md5', 'sha1', 'sha256', 'sha512'].flatMap((algorithm) => {
    const digest = createHash(algorithm).update(secret).digest();
    // Shortened digests confirm a guess as well.
    const forms = [digest.toString('hex').slice(0, 16), digest.toString('base64').slice(0, 11)];
    return forms.map((form) => [form, algorithm] as const);
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
