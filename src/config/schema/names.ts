import { z } from 'zod';
import { text } from '../values/codecs.ts';

/** A segment of a URL path that needs no escaping. */
export const NAMED = /^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,128}$/;
const ONE_LINE = /^[^\p{Cc}]{1,256}$/u;

/** A name that can be a segment of a path. */
export const plainName = () => text('a name of letters, digits and . _ ~ -, at most 128', NAMED);

/** A text for people, such as the name of a machine. */
export const oneLine = (title = 'a text of one line') => text(title, ONE_LINE);

/** The path of a file or directory. The loader makes it absolute. */
export const path = () =>
  z
    .string({ error: 'a path' })
    .min(1, { error: 'a path' })
    .meta({ title: 'a path, relative to the directory of this file' });
