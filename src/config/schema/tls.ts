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
  cert: path('A PEM file: the certificate, followed by the intermediate certificates of its chain.'),
  key: path('A PEM file: the private key of the certificate, not encrypted.'),
};

/** The keys of `gateway.tls` and `gateway.admin_tls`. */
export const listenerTls = {
  ...certificatePair,
  pairs: listOf(section(certificatePair), 'a list of cert and key')
    .prefault([])
    .describe('Further certificates. The client gets the one for the server name that it asks for (SNI).'),
  client_ca: path(
    'A PEM file: the authorities that sign client certificates. Clients without such a certificate are refused.',
  ).optional(),
  min_version: oneOf(['TLSv1.2', 'TLSv1.3']).prefault('TLSv1.2').describe('The oldest version of TLS.'),
};

/** TLS towards a replica: `replicas[].tls`. */
export const replicaTls = section({
  ca: path(
    "A PEM file: the authorities that sign the replica's certificate, instead of Node's own list.",
  ).optional(),
  cert: path('A PEM file: the client certificate that the replica asks for.').optional(),
  key: path('A PEM file: the private key of `cert`, not encrypted.').optional(),
  server_name: text('a DNS name', /^[A-Za-z0-9._-]{1,253}$/)
    .optional()
    .describe("The name in the replica's certificate. Default: the host of `url`."),
  verify: flag()
    .prefault(true)
    .describe("Whether the replica's certificate is verified. `false` accepts any server: for tests only."),
});
