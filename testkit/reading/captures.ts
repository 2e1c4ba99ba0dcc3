import { readFileSync } from 'node:fs';

/** A captured response of a real engine: its head, and its body in the HTTP chunks in which it came. */
export interface Capture {
  readonly status: number;
  /** Name and value in turn, as on the wire, without Transfer-Encoding. */
  readonly headers: readonly string[];
  readonly chunks: readonly Buffer[];
  readonly body: Buffer;
}

/** Reads `test/fixtures/captures/<name>.txt`, for example `llama/chat-stream-usage`. */
export function readCapture(name: string): Capture {
  const raw = readFileSync(new URL(`../../test/fixtures/captures/${name}.txt`, import.meta.url));
  const headEnd = raw.indexOf('\r\n\r\n');
  const [statusLine = '', ...fields] = raw.toString('latin1', 0, headEnd).split('\r\n');
  const rest = raw.subarray(headEnd + 4);
  const isChunked = fields.some((field) => /^transfer-encoding: chunked/i.test(field));
  const chunks = isChunked ? readChunks(rest) : [rest];
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: fields.filter((field) => !/^transfer-encoding:/i.test(field)).flatMap(splitField),
    chunks,
    body: Buffer.concat(chunks),
  };
}

function splitField(field: string): [string, string] {
  const colon = field.indexOf(':');
  return [field.slice(0, colon), field.slice(colon + 1).trim()];
}

function readChunks(framed: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  let position = 0;
  for (;;) {
    const lineEnd = framed.indexOf('\r\n', position);
    const sizeBytes = Number.parseInt(framed.toString('latin1', position, lineEnd), 16);
    if (!(sizeBytes > 0)) return chunks;
    chunks.push(framed.subarray(lineEnd + 2, lineEnd + 2 + sizeBytes));
    position = lineEnd + 2 + sizeBytes + 2;
  }
}
