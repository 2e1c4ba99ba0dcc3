import type { HttpFacts } from '#otel/encode/attributes.ts';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { toShownName } from '#otel/encode/shown-name.ts';
import type { Fields } from '../../http/fields.ts';

const MAX_CLIENT_REQUEST_ID_CHARS = 128;

/** The names of the tenant and feature headers, in lower case. */
export interface RecordedHeaders {
  readonly tenant: string;
  readonly feature: string;
}

/** The header fields of a request that its record uses, as they came. */
export interface RecordedFields {
  readonly tenant: string | undefined;
  readonly feature: string | undefined;
  readonly clientRequestId: string | undefined;
  readonly host: string | undefined;
}

/** Takes the fields out of a request, which can be dropped afterwards. */
export function takeRecordedFields(fields: Fields, names: RecordedHeaders): RecordedFields {
  return {
    tenant: fields.get(names.tenant),
    feature: fields.get(names.feature),
    clientRequestId: fields.get('x-request-id'),
    host: fields.get('host'),
  };
}

/** Writes the fields into a record. */
export function fillFromFields(
  record: RequestRecord,
  { tenant, feature, clientRequestId }: RecordedFields,
): void {
  setIfText(record, 'tenant', tenant);
  setIfText(record, 'feature', feature);
  setIfText(record, 'client_request_id', clientRequestId, MAX_CLIENT_REQUEST_ID_CHARS);
}

function setIfText(
  record: RequestRecord,
  name: 'tenant' | 'feature' | 'client_request_id',
  value: string | undefined,
  maxChars?: number,
): void {
  if (value === undefined) return;
  const cleaned = toShownName(toUnicode(value), maxChars).trim();
  if (cleaned !== '') record[name] = cleaned;
}

/** Header fields are read as latin-1. A value that is valid UTF-8 is decoded. */
function toUnicode(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value;
  const decoded = Buffer.from(value, 'latin1').toString('utf8');
  return decoded.includes('\ufffd') ? value : decoded;
}

/** The facts about the listener: scheme, and host and port if the Host field is valid. */
export function toHttpFacts(scheme: 'http' | 'https', host: string | undefined): HttpFacts {
  if (host === undefined) return { scheme };
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,255})(?::(\d{1,5}))?$/.exec(host);
  if (match?.[1] === undefined) return { scheme };
  const serverAddress = match[1].replace(/^\[|\]$/g, '');
  return match[2] === undefined
    ? { scheme, serverAddress }
    : { scheme, serverAddress, serverPort: Number(match[2]) };
}
