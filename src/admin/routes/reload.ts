import { z } from 'zod';
import { AdminError } from '../admin-error.ts';
import { defineRoute, json } from '../route.ts';

const keys = () => z.array(z.string()).readonly();

const reloadSchema = z
  .object({
    changed: keys().describe(
      'Keys of the file whose new values apply. `replicas` is one of them; `clients_file`, `jwt.jwks`, `statement_key`, `gateway.tls` and `gateway.admin_tls` are, too, if only a file that they name has changed. `SVC_ADMIN_TOKEN_FILE`, ' +
        '`SVC_OPERATOR_TOKEN_FILE`, `SVC_READ_TOKEN_FILE` and `SVC_DRAIN_TOKEN_FILE` stand for tokens that were read from such a file and have changed, ' +
        '`OTEL_EXPORTER_OTLP_HEADERS_FILE` and those of one signal for headers.',
    ),
    needs_restart: keys().describe('Keys of the file whose new values need a restart.'),
    replicas: z.object({
      added: keys(),
      changed: keys().describe('Includes replicas that have a new URL.'),
      removed: keys().describe('Their requests in flight continue until they end.'),
    }),
  })
  .meta({ id: 'Reload' });

/** POST /admin/reload. */
export const reloadConfig = defineRoute({
  method: 'POST',
  path: '/admin/reload',
  operationId: 'reloadConfig',
  summary: 'Read the configuration file again',
  description:
    'Does the same as SIGHUP: reads the configuration file and the files of the tokens. No request is cut. After the response, no new request reaches a removed replica. ' +
    'A file with errors changes nothing: the message of the 422 lists them all, one per line, and its `param` is the file.',
  response: { description: 'The new configuration applies.', content: json(reloadSchema) },
  errors: ['invalid_config'],
  async handle({ caller }, { reload }) {
    const outcome = await reload(caller?.name ?? null);
    if (outcome.kind === 'refused') {
      const { file, problems } = outcome;
      return new AdminError('invalid_config', { message: problems.join('\n'), ...(file && { param: file }) });
    }
    const { changed, needsRestart, replicas } = outcome;
    return { body: { changed, needs_restart: needsRestart, replicas } };
  },
});
