import { z } from 'zod';
import { configSchema } from './schema.ts';

/** The JSON Schema (draft 2020-12) of the configuration file, for editors, the reference and suggestions. */
export function toConfigJsonSchema(): z.core.JSONSchema.JSONSchema {
  return z.toJSONSchema(configSchema, {
    io: 'input',
    override: ({ jsonSchema }) => admitVariable(jsonSchema),
  });
}

/** An editor must not underline `level: ${LOG_LEVEL}`: the loader expands it before the words are compared. */
function admitVariable(schema: z.core.JSONSchema.BaseSchema): void {
  if (schema.enum === undefined) return;
  schema.anyOf = [{ enum: schema.enum }, { type: 'string', pattern: '\\$\\{' }];
  delete schema.enum;
  delete schema.type;
}
