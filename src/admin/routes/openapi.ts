import { z } from 'zod';
import { toOpenApiDocument } from '../openapi.ts';
import { defineRoute, json, type Route } from '../route.ts';

/**
 * GET /openapi.json, for a table of routes that contains this route. It needs the token like every API call. Tools
 * without the token can use docs/openapi.yaml.
 */
export function describeRoutes(routes: () => readonly Route[]): Route {
  let document: ReturnType<typeof toOpenApiDocument> | null = null; // takes 17 ms to compute
  return defineRoute({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'describeApi',
    summary: 'This document',
    response: {
      description: 'The admin API as an OpenAPI document.',
      content: json(z.looseObject({ openapi: z.string() })),
    },
    handle: () => {
      document ??= toOpenApiDocument(routes());
      return { body: { ...document } };
    },
  });
}
