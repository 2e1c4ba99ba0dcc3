import { z } from 'zod';
import { conditionSchema, toConditionsJson } from '../condition-schema.ts';
import { defineRoute, json } from '../route.ts';

/** GET /admin/conditions. */
export const listConditions = defineRoute({
  method: 'GET',
  path: '/admin/conditions',
  operationId: 'listConditions',
  summary: 'Everything that is wrong now',
  response: {
    description: 'The conditions that are on: the most severe first, then the oldest.',
    content: json(z.object({ conditions: z.array(conditionSchema).readonly() })),
  },
  handle: (_call, { conditions }) => ({ body: { conditions: toConditionsJson(conditions()) } }),
});
