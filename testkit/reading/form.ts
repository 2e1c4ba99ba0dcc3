/** A part of a form: a field, or a file. */
export interface FormPart {
  readonly name: string;
  readonly value: string | Uint8Array;
  readonly filename?: string;
}

/** The type of the forms of `formOf`. */
export const FORM_TYPE = 'multipart/form-data; boundary=boundary';

/** A form as clients write it. */
export function formOf(parts: readonly FormPart[]): Buffer {
  const pieces = parts.flatMap(({ name, value, filename }) => {
    const file = filename === undefined ? '' : `; filename="${filename}"\r\nContent-Type: audio/wav`;
    const head = `--boundary\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n`;
    return [Buffer.from(head), Buffer.from(value), Buffer.from('\r\n')];
  });
  return Buffer.concat([...pieces, Buffer.from('--boundary--\r\n')]);
}
