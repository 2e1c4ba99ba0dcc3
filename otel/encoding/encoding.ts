/*
 * What OTLP is written in: messages of protobuf.
 *
 * It never knows a span, a metric or a record: who reads or writes one brings its tags.
 * Begin with protobuf-writer.ts.
 */

export { type KnownTexts, MalformedProtobufError, ProtobufReader, readMessage } from './protobuf-reader.ts';
export {
  MAX_UNIT_BYTES,
  MAX_VARINT_BYTES,
  ProtobufWriter,
  sizeOfVarint,
  toTag,
  WIRE_TYPE,
} from './protobuf-writer.ts';
