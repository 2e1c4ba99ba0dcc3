import type { ApiClient } from '#proxy/entry';
import type { ResponseReader } from '#replicas/stored-responses';
import type { Fields } from '#wire/message';
import type { ProxySettings } from '../proxy-context.ts';
import { tenantOf } from '../record/recorded-fields.ts';
import { resolveModel } from './model-aliases.ts';

/** The tenant that a stored response belongs to: the whole of it, where a record has 256 characters. */
export function ownerOf(fields: Fields, client: ApiClient, { recordedFields }: ProxySettings): string {
  return tenantOf(fields, client, recordedFields, Number.POSITIVE_INFINITY);
}

/** Whose stored responses a request may ask for and follow; null: everyone's, since no keys are asked for. */
export function toResponseReader(
  fields: Fields,
  client: ApiClient | null,
  settings: ProxySettings,
): ResponseReader | null {
  if (client === null) return null;
  const models = client.models?.map((name) => resolveModel(name, settings.aliases)) ?? null;
  return { tenant: ownerOf(fields, client, settings), models };
}
