import { toShownName } from '#otel/base';
import type { HttpFacts, RequestNotes } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import type { ApiClient } from '#proxy/entry';
import type { HttpExchange } from '#wire/client';
import type { Fields } from '#wire/message';

/** What is recorded of a request's head and of its connection, and the currency of its cost. */
export interface RecordedFieldsSettings {
  /** The names of the headers, in lower case. */
  readonly tenant: string;
  readonly feature: string;
  readonly conversation: string;
  /** The headers with further names of the request; null: none is recorded. */
  readonly names:
    | readonly { readonly name: keyof NonNullable<RequestNotes['names']>; readonly header: string }[]
    | null;
  /** Whether the tenant header is recorded. With API keys the key decides, but for trusted proxies. */
  readonly trustsTenant: boolean;
  /** Whether only a client with a key may have a tenant: without one, what its header says is nobody's word. */
  readonly needsClient: boolean;
  /** Whether the subject of the client's certificate is recorded. */
  readonly clientSubject: boolean;
  /** A code of ISO 4217. */
  readonly currency: string;
}

/** What a record uses of the head of its request, as it came, and what of the settings at that time. */
export interface RecordedFields {
  /** Set when it is known. */
  client: ApiClient | null;
  readonly tenant: string | undefined;
  readonly feature: string | undefined;
  readonly conversation: string | undefined;
  /** Undefined: none of them came. */
  readonly names: RequestNotes['names'];
  readonly clientRequestId: string | undefined;
  readonly host: string | undefined;
  readonly clientSubject: string | undefined;
  /** Whether `tenant` counts only once the client is known. */
  readonly needsClient: boolean;
  /** Of its cost. */
  readonly currency: string;
}

/** Takes the fields out of a request, which can be dropped afterwards. */
export function takeRecordedFields(http: HttpExchange, settings: RecordedFieldsSettings): RecordedFields {
  const { fields } = http.head;
  return {
    client: null,
    tenant: settings.trustsTenant ? onlyValueOf(fields, settings.tenant) : undefined,
    feature: onlyValueOf(fields, settings.feature),
    conversation: onlyValueOf(fields, settings.conversation),
    names: settings.names === null ? undefined : takeNames(fields, settings.names),
    clientRequestId: onlyValueOf(fields, 'x-request-id'),
    host: fields.get('host'),
    clientSubject: settings.clientSubject ? http.clientSubject : undefined,
    needsClient: settings.needsClient,
    currency: settings.currency,
  };
}

function takeNames(
  fields: Fields,
  headers: NonNullable<RecordedFieldsSettings['names']>,
): RequestNotes['names'] {
  const found = headers.flatMap(({ name, header }) => {
    const text = toText(onlyValueOf(fields, header));
    return text === null ? [] : [[name, text] as const];
  });
  return found.length === 0 ? undefined : Object.fromEntries(found);
}

/**
 * The value of a field that comes once. One that comes twice, of which a proxy may have set only the other, says nothing:
 * it is not a list.
 */
function onlyValueOf(fields: Fields, lowerName: string): string | undefined {
  const { lowerNames, values } = fields;
  const at = lowerNames.indexOf(lowerName);
  if (at === -1 || lowerNames.includes(lowerName, at + 1)) return undefined;
  return values[at];
}

/** The tenant that is recorded of a client's request. `maxChars`: those of a record, by default. */
export function tenantOf(
  fields: Fields,
  client: ApiClient,
  settings: RecordedFieldsSettings,
  maxChars?: number,
): string {
  const named = settings.trustsTenant ? toText(onlyValueOf(fields, settings.tenant), maxChars) : null;
  return named ?? toShownName(client.tenant, maxChars);
}

/** Writes the fields into a record. */
export function fillFromFields(
  record: RequestRecord,
  { client, tenant, feature, conversation, clientRequestId, clientSubject, needsClient }: RecordedFields,
): void {
  if (client !== null || !needsClient) setIfText(record, 'tenant', tenant);
  setIfText(record, 'feature', feature);
  setIfText(record, 'conversation_id', conversation);
  if (client !== null) fillFromClient(record, client);
  setIfText(record, 'client_request_id', clientRequestId);
  // Node separates the parts of a subject by line feeds. It is UTF-16 already.
  if (clientSubject !== undefined) record.client_subject = toShownName(clientSubject.replaceAll('\n', ','));
}

/** What the configuration says of a client is text already. It replaces what the client says, but for a trusted tenant. */
function fillFromClient(record: RequestRecord, { name, tenant, feature }: ApiClient): void {
  if (name !== null) record.client = toShownName(name);
  record.tenant ??= toShownName(tenant);
  if (feature !== null) record.feature = toShownName(feature);
}

function setIfText(
  record: RequestRecord,
  name: 'tenant' | 'feature' | 'conversation_id' | 'client_request_id',
  value: string | undefined,
): void {
  const text = toText(value);
  if (text !== null) record[name] = text;
}

function toText(value: string | undefined, maxChars?: number): string | null {
  if (value === undefined) return null;
  const cleaned = toShownName(toUnicode(value), maxChars).trim();
  return cleaned === '' ? null : cleaned;
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
