/** A form as a request has it. */
export interface Form {
  readonly contentType: string;
  /** The body, in the pieces in which it comes. */
  readonly pieces: readonly Buffer[];
}

/** What a reader finds in a part. */
export interface ReadPart {
  readonly name: string;
  /** Null: the part is text, not a file. */
  readonly filename: string | null;
  readonly content: string;
}

/** The parts that a parser finds, in order; null: it refuses the form. */
export type PeerReading = readonly ReadPart[] | null;

/** What the gateway's reader finds; null: it refuses the form. */
export type OurReading = { readonly model: string | null; readonly promptChars: number | undefined } | null;

/** Forms as the programs of the peers read them: every number has 4 bytes, the highest first. */
export function encodeForms(forms: readonly Form[]): Buffer {
  const out: Buffer[] = [];
  for (const { contentType, pieces } of forms) {
    out.push(sized(Buffer.from(contentType, 'latin1')), toBytes(pieces.length), ...pieces.map(sized));
  }
  return Buffer.concat(out);
}

/** The forms in such a file. */
export function decodeForms(bytes: Buffer): Form[] {
  let offset = 0;
  const readNumber = () => {
    offset += NUMBER_BYTES;
    return bytes.readUInt32BE(offset - NUMBER_BYTES);
  };
  const readBytes = () => {
    const end = readNumber() + offset;
    const start = offset;
    offset = end;
    return bytes.subarray(start, end);
  };
  const forms: Form[] = [];
  while (offset < bytes.length) {
    const contentType = readBytes().toString('latin1');
    forms.push({ contentType, pieces: Array.from({ length: readNumber() }, readBytes) });
  }
  return forms;
}

const NUMBER_BYTES = 4;

const sized = (bytes: Buffer): Buffer => Buffer.concat([toBytes(bytes.length), bytes]);

function toBytes(value: number): Buffer {
  const bytes = Buffer.alloc(NUMBER_BYTES);
  bytes.writeUInt32BE(value);
  return bytes;
}
