import { z } from 'zod';
import { listOf, oneOrMore, text, time, wholeNumber } from './codecs.ts';
import { facts, section } from './keys.ts';
import { oneLine } from './names.ts';

const digestTitle = 'the SHA-256 of a key: 64 hexadecimal digits, as `gateway key create NAME` prints it';
const digest = () => text(digestTitle, /^[0-9a-fA-F]{64}$/).toLowerCase();

/** What a client may use: of `clients`, and of each tenant with `jwt` and `tenant_limits`. */
export const clientLimits = {
  max_inflight: wholeNumber(1, 1_000_000)
    .optional()
    .describe('How many requests may run at the same time. Default: no limit.'),
  requests_per_minute: wholeNumber(1, 10_000_000)
    .optional()
    .describe('Requests per minute. Default: no limit.'),
  tokens_per_minute: wholeNumber(1, 1_000_000_000)
    .optional()
    .describe('Tokens per minute, prompt and completion. Default: no limit.'),
};

/** One entry of `clients`, or of the file that `clients_file` names. */
export const apiClient = section({
  name: text(
    'a unique name of letters, digits and . _ ~ -, at most 128',
    /^[A-Za-z0-9._~-]{1,128}$/,
  ).describe('Its name in records, as `gateway.client`.'),
  key_sha256: oneOrMore(digest, digestTitle, `${digestTitle}, or a list of them`)
    .register(facts, { holds: 'digest' })
    .describe('Its key. A list allows an old and a new key during a rotation.'),
  tenant: oneLine().optional().describe('The tenant of its requests. Default: `name`.'),
  feature: oneLine()
    .optional()
    .describe("The feature of its requests. Default: the client's own header (`headers.feature`)."),
  models: listOf(oneLine(), 'a list of model names', { min: 1 })
    .optional()
    .describe('The models it may use; others do not exist for it. Default: all.'),
  expires: time().optional().describe('When its keys expire. Default: never.'),
  ...clientLimits,
});

const tenantLimitsTitle = 'names of tenants with their limits, at most 10000';

/** Limits of tenants: `tenant_limits`. */
export const tenantLimits = z
  .record(oneLine(), section(clientLimits), { error: tenantLimitsTitle })
  .refine((rows) => Object.keys(rows).length <= 10_000, { error: tenantLimitsTitle })
  .meta({ title: tenantLimitsTitle });
