import { z } from 'zod';
import type { NeededRole } from '#config/secrets';
import { ADMIN_ERRORS, type AdminErrorCode, errorSchema } from './admin-error.ts';
import type { Route } from './route.ts';

type JsonSchema = z.core.JSONSchema.BaseSchema;

/** The errors that any call with a token can get, on every route. */
const COMMON_ERRORS: readonly AdminErrorCode[] = [
  'unauthorized',
  'admin_disabled',
  'request_timeout',
  'request_too_large',
  'host_not_allowed',
  'too_many_wrong_tokens',
  'internal_error',
];

const DESCRIPTION = `Drains replicas and shows what the gateway does. It listens on \`gateway.admin_listen\`.

Every call needs a bearer token. An admin token (SVC_ADMIN_TOKEN) allows every call, an operator token \
(SVC_OPERATOR_TOKEN) every GET, drain, undrain and what concerns rollouts, a read-only token (SVC_READ_TOKEN) every GET, a drain token (SVC_DRAIN_TOKEN) the drain and undrain of the replicas that it names. If no token is configured, every call is rejected. Errors have a stable \`code\`. Later versions may add members to responses and new error codes.`;

/** The OpenAPI document (3.1) of these routes, without pages. It does not depend on a running gateway. */
export function toOpenApiDocument(routes: readonly Route[]) {
  const operations = routes.filter((route) => !route.isPage);
  const { responses, schemas } = toSchemas(operations);
  const paths: Record<string, Record<string, object>> = {};
  for (const route of operations) {
    const path = paths[route.path] ?? {};
    path[route.method.toLowerCase()] = toOperation(route, responses[route.operationId]);
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

/** The schema of each operation's response by operation id, and the schemas with a name of their own. */
function toSchemas(operations: readonly Route[]) {
  const responses = operations.flatMap(({ operationId, response }): [string, z.ZodType][] =>
    response.schema === null ? [] : [[operationId, response.schema]],
  );
  const whole = z.object({ responses: z.object(Object.fromEntries(responses)), error: errorSchema });
  const { properties, $defs: schemas } = moveDefinitions(z.toJSONSchema(whole, { override: simplify }));
  const byOperation = properties?.responses as JsonSchema | undefined;
  return { responses: byOperation?.properties ?? {}, schemas };
}

/** In OpenAPI, named schemas are in `components`, not in `$defs`. */
function moveDefinitions(schema: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/'));
}

/**
 * Makes objects open, because clients that reject unknown members would break with later versions. Removes what zod
 * adds by itself: `readOnly` for readonly arrays, the largest safe integer, and the patterns of formats.
 */
function simplify({ jsonSchema }: { readonly jsonSchema: JsonSchema }): void {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
  if (jsonSchema.format !== undefined) delete jsonSchema.pattern;
  delete jsonSchema.readOnly;
}

function toOperation(route: Route, responseSchema: unknown): object {
  const { operationId, summary, description } = route;
  const parameters = [...toPathParameters(route), ...toQueryParameters(route)];
  const content = {
    [route.response.mediaType]: responseSchema === undefined ? {} : { schema: responseSchema },
  };
  const errors = errorsOf(route).map((codes) => [
    ADMIN_ERRORS[codes[0]].status,
    { $ref: `#/components/responses/${nameOf(codes)}` },
  ]);
  return {
    operationId,
    summary,
    ...(description === undefined ? {} : { description }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(route.body === null ? {} : { requestBody: toRequestBody(route.body) }),
    responses: { 200: { description: route.response.description, content }, ...Object.fromEntries(errors) },
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

function toRequestBody(schema: z.ZodType): object {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io: 'input', override: simplify });
  return { required: true, content: { 'application/json': { schema: described } } };
}

type Codes = readonly [AdminErrorCode, ...AdminErrorCode[]];

/** The errors of a route, grouped by status, because a status has one response. */
function errorsOf({ role, errors, isForLinks }: Route): Codes[] {
  const accessErrors = isForLinks ? [] : ROLE_ERRORS[role];
  const byStatus = Object.groupBy(
    [...errors, ...accessErrors, ...COMMON_ERRORS],
    (code) => ADMIN_ERRORS[code].status,
  );
  return Object.values(byStatus).filter(
    (codes): codes is [AdminErrorCode, ...AdminErrorCode[]] => codes !== undefined,
  );
}

/** The errors of calls whose token has a weaker role. */
const ROLE_ERRORS: Readonly<Record<NeededRole, readonly AdminErrorCode[]>> = {
  reader: ['drain_token'],
  operator: ['drain_token', 'read_only_token'],
  admin: ['drain_token', 'read_only_token', 'admin_token_required'],
};

function nameOf(codes: Codes): string {
  return codes.join('.');
}

function toErrorResponse(codes: Codes): object {
  const code = { type: 'string', enum: codes };
  const narrowed = { properties: { error: { properties: { code } } } };
  return {
    description: codes.map((each) => `\`${each}\`: ${ADMIN_ERRORS[each].message}`).join('\n\n'),
    content: {
      'application/json': { schema: { $ref: '#/components/schemas/Error', ...narrowed } },
    },
  };
}
