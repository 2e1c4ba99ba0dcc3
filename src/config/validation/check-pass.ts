import { BASIC_PATHS, PATHS_OF_ENDPOINT } from '../schema/endpoint-paths.ts';
import { type PassedPath, parsePassedPath } from '../schema/passed-path.ts';
import { configSchema } from '../schema.ts';
import type { Violation } from './violation.ts';

/** What the gateway answers or records by itself, and under what condition. */
interface OwnPath extends PassedPath {
  readonly reason: string;
}

/**
 * Checks that `pass` names nothing twice, and nothing that the gateway answers or records itself. Reads the data as
 * given; an entry that breaks the schema is left out.
 */
export function checkPass(data: Readonly<Record<string, unknown>>): Violation[] {
  const given: readonly unknown[] = Array.isArray(data.pass) ? data.pass : [];
  const own = ownPathsOf(data);
  const firstWith = new Map<unknown, number>();
  return given.flatMap((text, index) => {
    const passed = typeof text === 'string' ? parsePassedPath(text) : null;
    if (passed === null) return [];
    const path = ['pass', index];
    const first = firstWith.get(text);
    if (first !== undefined) return [{ path, message: `pass[${first}] is the same` }];
    firstWith.set(text, index);
    if (/^\/admin(?:\/|$)/.test(passed.path)) return [{ path, message: 'it is a path of the admin API' }];
    const covered = own.find((each) => covers(passed, each));
    return covered === undefined ? [] : [{ path, message: covered.reason }];
  });
}

function ownPathsOf(data: Readonly<Record<string, unknown>>): readonly OwnPath[] {
  const { data: further = [] } = configSchema.in.shape.endpoints.safeParse(data.endpoints);
  const { data: listing } = configSchema.in.shape.models_listing.safeParse(data.models_listing);
  const answered = 'the gateway answers it itself';
  const recorded = [...BASIC_PATHS, ...further.flatMap((name) => PATHS_OF_ENDPOINT[name])];
  return [
    { method: 'GET', path: '/healthz', reason: answered },
    { method: 'GET', path: '/v1/models', reason: answered },
    ...(listing === 'union' ? [{ method: 'GET', path: '/v1/models/{id}', reason: answered }] : []),
    ...recorded.map((path) => ({ method: 'POST', path, reason: `POST ${path} is recorded` })),
  ];
}

function covers(passed: PassedPath, { method, path }: PassedPath): boolean {
  if (passed.method !== method) return false;
  return passed.path.endsWith('/*') ? path.startsWith(passed.path.slice(0, -1)) : path === passed.path;
}
