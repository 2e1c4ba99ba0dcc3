import { z } from 'zod';
import { AdminError } from '../admin-error.ts';
import { defineRoute, json } from '../route.ts';

/** GET /admin/statement-key. */
export const showStatementKey = defineRoute({
  method: 'GET',
  path: '/admin/statement-key',
  operationId: 'showStatementKey',
  summary: 'The public key of statements',
  description: 'The public part of `statement_key`, by which statements of usage are verified.',
  response: {
    description: 'The key.',
    content: json(
      z
        .object({ public_key: z.string().describe('Ed25519: 32 bytes in base64.') })
        .meta({ id: 'StatementKey' }),
    ),
  },
  errors: ['no_statement_key'],
  handle(_, { statementKey }) {
    const publicKey = statementKey();
    return publicKey === null ? new AdminError('no_statement_key') : { body: { public_key: publicKey } };
  },
});
