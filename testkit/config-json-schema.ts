import { z } from 'zod';
import { configSchema } from '../src/config/schema.ts';

/** Returns the JSON Schema (draft 2020-12) of the configuration file, for editors, the reference and suggestions. */
export function toConfigJsonSchema(): z.core.JSONSchema.JSONSchema {
  const schema = z.toJSONSchema(configSchema, {
    io: 'input',
    override: ({ jsonSchema }) => allowVariable(jsonSchema),
  });
  return { ...schema, patternProperties: { '^x-': true } };
}

/** Accepts `level: ${LOG_LEVEL}` in editors: the loader expands it before it compares the value. */
function allowVariable(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.enum === undefined) return;
  schema.anyOf = [{ enum: schema.enum }, { type: 'string', pattern: '\\$\\{' }];
  delete schema.enum;
  delete schema.type;
}
