import type { ProtobufWriter } from '#otel/encoding';
import type { RequestRecord } from '#otel/record/registry';
import type { HttpFacts, RecordAttribute } from './attributes.ts';
import type { AttributeSet, PlacedAttribute } from './layout/record-layout.ts';
import { AttributePiece, replaceValue, writeAttribute } from './protobuf/attribute-piece.ts';

/**
 * Writes attributes of a record: its fields as `gateway.…`, and the same facts under the names of the semantic
 * conventions. Unknown values are absent. Values that make a Collector refuse the whole batch are
 * left out or cut: NaN, infinities, integers beyond 2^53, lone surrogates, unlimited strings and lists.
 *
 * Why it is fast: the bytes of the last record stay in the writer's memory. An attribute with the same value is not
 * touched, and one whose new value has the same length gets only that. From the first attribute with another length on,
 * everything moves and is written again. So the attributes whose length never changes come first, the lists last.
 */
export class RecordAttributesWriter {
  readonly #writer: ProtobufWriter;
  readonly #valuesOf: AttributeSet['valuesOf'];
  readonly #pieces: readonly AttributePiece[];
  /** Where the attributes of the last record begin; -1 if they are not in memory any more. */
  #startedAt = -1;

  /** Call `forget` when anybody else may have changed the writer's memory from the first attribute on. */
  constructor(writer: ProtobufWriter, { attributes, valuesOf }: AttributeSet) {
    this.#writer = writer;
    this.#valuesOf = valuesOf;
    this.#pieces = toPieces(attributes);
  }

  /** What is in the writer's memory may not be the attributes of the last record any more. */
  forget(): void {
    this.#startedAt = -1;
  }

  /** Writes the attributes at the writer's place. */
  write(record: Readonly<RequestRecord>, http: HttpFacts): void {
    const writer = this.#writer;
    const values = this.#valuesOf(record, http);
    let isInPlace = this.#startedAt === writer.at;
    const startedAt = writer.at;
    for (const piece of this.#pieces) {
      const value = values[piece.index];
      if (isInPlace && (value === piece.value || replaceValue(writer, piece, value))) {
        piece.value = value;
        writer.at += piece.sizeBytes;
        continue;
      }
      const start = writer.at;
      writeAttribute(writer, piece, value);
      piece.value = value;
      const sizeBytes = writer.at - start;
      if (sizeBytes !== piece.sizeBytes) isInPlace = false;
      piece.sizeBytes = sizeBytes;
    }
    this.#startedAt = startedAt;
  }
}

function toPieces(attributes: readonly PlacedAttribute[]): readonly AttributePiece[] {
  const pieces = attributes.map((attribute) => ({
    piece: new AttributePiece(attribute),
    rank: toRank(attribute),
  }));
  return pieces.toSorted((one, other) => one.rank - other.rank).map(({ piece }) => piece);
}

/** Attributes with a low rank seldom change their length. */
function toRank({ type, varies, isRequired }: RecordAttribute): number {
  if (type === 'strings' || type === 'doubles') return 4;
  if (isRequired) return 0;
  if (varies) return 3;
  return type === 'string' ? 2 : 1;
}
