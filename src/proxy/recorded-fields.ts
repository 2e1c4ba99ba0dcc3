import type { IncomingMessage } from 'node:http';
import type { RequestRecord } from '#otel/request-record.ts';
import { toShownName } from '#otel/shown-name.ts';

const MAX_CLIENT_REQUEST_ID_CHARS = 128;

/** The header names, in lower case, from which tenant and feature are taken. */
export interface RecordedHeaders {
  readonly tenant: string;
  readonly feature: string;
}

/** The header fields of a request that its record tells something of, as they came. */
export interface RecordedFields {
  readonly tenant: string | undefined;
  readonly feature: string | undefined;
  readonly clientRequestId: string | undefined;
  readonly host: string | undefined;
}

/** Takes the fields out of a request, which can be let go of then. */
export function takeRecordedFields(request: IncomingMessage, names: RecordedHeaders): RecordedFields {
  return {
    tenant: headerOf(request, names.tenant),
    feature: headerOf(request, names.feature),
    clientRequestId: headerOf(request, 'x-request-id'),
    host: request.headers.host,
  };
}

/** Writes what the fields tell into a record. */
export function fillFromFields(
  record: RequestRecord,
  { tenant, feature, clientRequestId }: RecordedFields,
): void {
  setIfText(record, 'tenant', tenant);
  setIfText(record, 'feature', feature);
  setIfText(record, 'client_request_id', clientRequestId, MAX_CLIENT_REQUEST_ID_CHARS);
}

function headerOf(request: IncomingMessage, name: string): string | undefined {
  // A header may be called `constructor`, which every object has.
  const value = Object.hasOwn(request.headers, name) ? request.headers[name] : undefined;
  return Array.isArray(value) ? value.join(', ') : value;
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

/** Field bytes reach us as latin-1; clients that send UTF-8 are read as such. */
function toUnicode(value: string): string {
  if (!/[\u0080-\u00ff]/.test(value)) return value;
  const decoded = Buffer.from(value, 'latin1').toString('utf8');
  return decoded.includes('\ufffd') ? value : decoded;
}

/** The host and port of a Host field; nothing where it is not one. */
export function toServer(host: string): { serverAddress?: string; serverPort?: number } {
  const match = /^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]{1,255})(?::(\d{1,5}))?$/.exec(host);
  if (match?.[1] === undefined) return {};
  const serverAddress = match[1].replace(/^\[|\]$/g, '');
  return match[2] === undefined ? { serverAddress } : { serverAddress, serverPort: Number(match[2]) };
}
