import { z } from 'zod';
import { isPem } from '../shown-value.ts';
import { flag, listOf, oneOf, text } from './codecs.ts';
import { facts, section } from './keys.ts';

const path = (meaning: string) =>
  z
    .string({ error: 'a path' })
    .min(1, { error: 'a path' })
    .refine((given) => !isPem(given), { error: 'the path of a PEM file, not its text' })
    .meta({ title: 'a path, relative to the directory of this file' })
    .register(facts, { holds: 'path' })
    .describe(meaning);

const certificatePair = {
  cert: path('PEM: the certificate, followed by its intermediates.'),
  key: path('PEM: the private key, unencrypted.'),
};

/** The keys of `gateway.tls` and `gateway.admin_tls`. */
export const listenerTls = {
  ...certificatePair,
  pairs: listOf(section(certificatePair), 'a list of cert and key')
    .prefault([])
    .describe('More certificates, chosen by the server name that the client asks for (SNI).'),
  client_ca: path(
    'PEM: the authorities of client certificates. Clients without such a certificate are refused.',
  ).optional(),
  min_version: oneOf(['TLSv1.2', 'TLSv1.3']).prefault('TLSv1.2').describe('The oldest version accepted.'),
};

/** TLS towards a replica: `replicas[].tls`. */
export const replicaTls = section({
  ca: path("PEM: the authorities of the replica's certificate, instead of Node's own list.").optional(),
  cert: path('PEM: the client certificate for the replica.').optional(),
  key: path('PEM: the private key of `cert`, unencrypted.').optional(),
  server_name: text('a DNS name', /^(?![0-9.]+$)[A-Za-z0-9._-]{1,253}$/)
    .optional()
    .describe("The name in the replica's certificate. Default: the host of `url`."),
  verify: flag()
    .prefault(true)
    .describe("Verify the replica's certificate. `false` accepts any server: for tests only."),
});
