import { z } from 'zod';
import { json } from '../content.ts';
import { toOpenApiDocument } from '../openapi.ts';
import { defineRoute, type Route } from '../route.ts';

/**
 * GET /openapi.json, of a table of routes that this route is part of. It needs the token as every call does: the
 * contract knows no exception, and tools without the token have docs/openapi.yaml.
 */
export function describeRoutes(routes: () => readonly Route[]): Route {
  let document: ReturnType<typeof toOpenApiDocument> | null = null;
  return defineRoute({
    method: 'GET',
    path: '/openapi.json',
    operationId: 'describeApi',
    summary: 'This document',
    answer: {
      description: 'The admin API as an OpenAPI document.',
      content: json(z.looseObject({ openapi: z.string() })),
    },
    handle: () => {
      document ??= toOpenApiDocument(routes());
      return { body: { ...document } };
    },
  });
}
