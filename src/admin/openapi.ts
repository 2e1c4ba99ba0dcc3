import { z } from 'zod';
import { errorSchema, REFUSALS, type RefusalCode } from './refusal.ts';
import type { Route } from './route.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** What any call that needs the token can get, whatever its route. */
const COMMON_REFUSALS: readonly RefusalCode[] = [
  'unauthorized',
  'admin_disabled',
  'request_timeout',
  'request_too_large',
  'internal_error',
];

const DESCRIPTION = `Drains replicas, and tells what the gateway does. Its listener is \`gateway.admin_listen\`.

Every call needs the token of SVC_ADMIN_TOKEN; without one configured, every call is refused. Errors have a stable \
\`code\`. Answers may get more members in later versions, and errors more codes.`;

/** The OpenAPI document (3.1) of these routes: all but pages. It holds nothing of a running gateway. */
export function toOpenApiDocument(routes: readonly Route[]) {
  const operations = routes.filter((route) => !route.isPage);
  const { answers, schemas } = toSchemas(operations);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of operations) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = toOperation(route, answers[route.operationId]);
    paths[route.path] = path;
  }
  const errors = operations.flatMap(errorsOf).map((codes) => [nameOf(codes), toErrorResponse(codes)]);
  return {
    openapi: '3.1.1',
    info: {
      title: 'Spangate admin API',
      description: DESCRIPTION,
      version: '1.0',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    security: [{ adminToken: [] }],
    paths,
    components: {
      securitySchemes: { adminToken: { type: 'http', scheme: 'bearer' } },
      responses: Object.fromEntries(errors),
      schemas,
    },
  };
}

/** The schema of each operation's answer, by its id; and those schemas that have a name of their own. */
function toSchemas(operations: readonly Route[]) {
  const answers = operations.flatMap(({ operationId, answer }): [string, z.ZodType][] =>
    answer.schema === null ? [] : [[operationId, answer.schema]],
  );
  const whole = z.object({ answers: z.object(Object.fromEntries(answers)), error: errorSchema });
  const { properties, $defs: schemas } = moveDefinitions(z.toJSONSchema(whole, { override: simplify }));
  const byOperation = properties?.answers as JsonSchema | undefined;
  return { answers: byOperation?.properties ?? {}, schemas };
}

/** Named schemas are at home under `components` in OpenAPI, not under `$defs`. */
function moveDefinitions(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'));
}

/**
 * Objects are open: a client that refuses members it does not know would break with each version. What zod adds
 * of its own accord is left out: arrays that are readonly in TypeScript, the integers of JavaScript, and patterns
 * of formats.
 */
function simplify({ jsonSchema }: { readonly jsonSchema: JsonSchema }): void {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  delete jsonSchema.readOnly;
}

function toOperation(route: Route, answer: unknown): object {
  const { operationId, summary, description } = route;
  const parameters = [...toPathParameters(route), ...toQueryParameters(route)];
  const content = { [route.answer.mediaType]: answer === undefined ? {} : { schema: answer } };
  const errors = errorsOf(route).map((codes) => [
    REFUSALS[codes[0]].status,
    { $ref: `#/components/responses/${nameOf(codes)}` },
  ]);
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    responses: { 200: { description: route.answer.description, content }, ...Object.fromEntries(errors) },
  };
}

function toPathParameters({ params }: Route): object[] {
  return Object.entries(params).map(([name, description]) => ({
    name,
    in: 'path',
    required: true,
    description,
    schema: { type: 'string' },
  }));
}

function toQueryParameters({ query }: Route): object[] {
  const { properties = {}, required = [] } = z.toJSONSchema(query, { io: 'input' });
  return Object.entries(properties).map(([name, property]) => {
    const { description, ...schema } = property as JsonSchema;
    return { name, in: 'query', required: required.includes(name), description, schema };
  });
}

type Codes = readonly [RefusalCode, ...RefusalCode[]];

/** What a route may refuse with: the codes of one status together, for a status has one response. */
function errorsOf({ refusals }: Route): Codes[] {
  const byStatus = Object.groupBy([...refusals, ...COMMON_REFUSALS], (code) => REFUSALS[code].status);
  return Object.values(byStatus).filter(
    (codes): codes is [RefusalCode, ...RefusalCode[]] => codes !== undefined,
  );
}

function nameOf(codes: Codes): string {
  return codes.join('.');
}

function toErrorResponse(codes: Codes): object {
  const code = { type: 'string', enum: codes };
  const narrowed = { properties: { error: { properties: { code } } } };
  return {
    description: codes.map((each) => `\`${each}\`: ${REFUSALS[each].message}`).join('\n\n'),
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/Error', ...narrowed } },
    },
  };
}
