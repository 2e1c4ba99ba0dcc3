import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import protobuf from 'protobufjs';

const { Namespace, parse, Type } = protobuf;

const { root } = parse(readFileSync(join(import.meta.dirname, 'messages.proto'), 'utf8'));

compileCodecs(root);

/** protobufjs compiles a message at its first use, which would delay the first answer of a collector. */
function compileCodecs({ nestedArray }: Pick<protobuf.Namespace, 'nestedArray'>): void {
  for (const nested of nestedArray) {
    if (nested instanceof Type) nested.setup();
    if (nested instanceof Namespace || nested instanceof Type) compileCodecs(nested);
  }
}

/** The ids, which OTLP JSON has in hex and protobuf's own JSON in base64. */
const IDS: ReadonlySet<string> = new Set(['traceId', 'spanId', 'parentSpanId']);

/** A message of messages.proto. */
type MessageName = 'TracesData' | 'ScopeSpans' | 'MetricsData' | 'ExportTraceServiceResponse' | 'RpcStatus';

/**
 * Decodes a message with protobufjs, to the object that its OTLP JSON is: int64 as strings, ids in hex. Counts that are
 * zero and lists that are empty are there, members of a oneof only if they were sent. Throws if it is malformed.
 */
export function decodeMessage(name: MessageName, bytes: Uint8Array): unknown {
  const type = root.lookupType(`otlp.${name}`);
  const options = { longs: String, bytes: String, defaults: true } as const;
  return withHexIds(type.toObject(type.decode(bytes), options));
}

/** Encodes a message with protobufjs. */
export function encodeMessage(name: MessageName, message: object): Uint8Array {
  const type = root.lookupType(`otlp.${name}`);
  return type.encode(type.fromObject({ ...message })).finish();
}

/** Changes the ids of a message, and of all in it, in place. */
function withHexIds(message: unknown): unknown {
  if (typeof message !== 'object' || message === null) return message;
  const fields = message as Record<string, unknown>;
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    if (typeof value === 'object') withHexIds(value);
    else if (typeof value === 'string' && IDS.has(name))
      fields[name] = Buffer.from(value, 'base64').toString('hex');
  }
  return message;
}
