import { FormReader, FormSyntaxError } from '../../src/proxy/form/form-reader.ts';
import { parseBoundary } from '../../src/proxy/form/part-head.ts';
import type { Form, OurReading } from './form.ts';

/** Reads a form as the gateway does. Throws an Error if it depends on the pieces. */
export function readOurs({ contentType, pieces }: Form): OurReading {
  const boundary = parseBoundary(contentType);
  if (boundary === null) return null;
  const reading = read(boundary, pieces);
  const whole = read(boundary, [Buffer.concat(pieces)]);
  if (reading?.model !== whole?.model || reading?.promptChars !== whole?.promptChars) {
    throw new Error('what we read depends on how the form is cut');
  }
  return reading;
}

function read(boundary: string, pieces: readonly Buffer[]): OurReading {
  const reader = new FormReader(boundary);
  try {
    for (const piece of pieces) reader.push(piece);
    reader.end();
  } catch (error) {
    if (error instanceof FormSyntaxError) return null;
    throw error;
  }
  return { model: reader.model, promptChars: reader.promptChars };
}
