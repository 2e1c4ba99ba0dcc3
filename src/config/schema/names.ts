import { z } from 'zod';
import { text } from './codecs.ts';
import { facts } from './keys.ts';

/** A segment of a URL path that needs no escaping. */
export const NAMED = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/;
const ONE_LINE = /^[^\p{Cc}]{1,256}$/u;

/** A name that can be a segment of a path. */
export const plainName = () => text('a name of letters, digits and . _ ~ -, at most 128', NAMED);

/** A text for people, such as the name of a machine. */
export const oneLine = (title = 'a text of one line, at most 256 characters') => text(title, ONE_LINE);

/** The path of a file or directory. The loader makes it absolute. */
export const path = () =>
  z
    .string({ error: 'a path' })
    .min(1, { error: 'a path' })
    .meta({ title: 'a path, relative to the directory of this file' })
    .register(facts, { holds: 'path' });

const API_KEY = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
const WITH_SCHEME = /^(?:authorization\s*:\s*)?bearer\s/i;

/** The key of a replica, without the `Bearer` that the gateway writes before it. */
export const apiKey = () =>
  text('a key of printable ASCII characters', API_KEY)
    .refine((given) => !WITH_SCHEME.test(given), {
      error: 'the key alone: the gateway writes Bearer before it',
    })
    .refine((given) => !/^\$\w+$/.test(given), {
      error: 'a key; around the name of a variable, braces are missing',
    })
    .register(facts, { holds: 'secret' });
