import { z } from 'zod';
import { json } from '../content.ts';
import { Refusal } from '../refusal.ts';
import { defineRoute } from '../route.ts';

const keys = () => z.array(z.string()).readonly();

const reloadSchema = z
  .object({
    changed: keys().describe('Keys of the file whose new value is in force; `replicas` is one.'),
    needs_restart: keys().describe('Keys of the file whose new value waits for a restart.'),
    replicas: z.object({
      added: keys(),
      changed: keys().describe('Those that moved to another url are among them.'),
      removed: keys().describe('They finish what they have in flight.'),
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
    'As SIGHUP does. No request is cut. Once this has answered, no new request reaches a replica that was removed. ' +
    'A file with mistakes changes nothing: the message of the 422 tells them all, one a line.',
  answer: { description: 'The configuration is in force.', content: json(reloadSchema) },
  refusals: ['invalid_config'],
  async handle(_call, { reload }) {
    const outcome = await reload();
    if (outcome.kind === 'refused') {
      return new Refusal('invalid_config', { message: outcome.problems.join('\n') });
    }
    const { changed, needsRestart, replicas } = outcome;
    return { body: { changed, needs_restart: needsRestart, replicas } };
  },
});
