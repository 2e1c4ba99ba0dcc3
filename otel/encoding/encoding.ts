/*
 * What OTLP is written in: messages of protobuf, and values of JSON.
 *
 * It never knows a span, a metric or a record: who reads or writes one brings its tags.
 * Begin with protobuf-writer.ts.
 */

export { isJsonObject, type JsonObject, listOf, parseJson, readJsonInt } from './otlp-json.ts';
export { type KnownTexts, MalformedProtobufError, ProtobufReader, readMessage } from './protobuf-reader.ts';
export {
  MAX_UNIT_BYTES,
  MAX_VARINT_BYTES,
  ProtobufWriter,
  sizeOfVarint,
  toTag,
  WIRE_TYPE,
} from './protobuf-writer.ts';
