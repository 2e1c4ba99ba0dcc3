import type { PassedPaths } from '#proxy/entry';
import { toShownText } from '#wire';
import type { RecordedEndpoint } from './endpoints/recorded-endpoint.ts';
import { findRecordedEndpoint, HEALTH_PATH, MODELS_PATH, USAGE_PATH } from './endpoints/table.ts';

const PASSED_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** The prefix of most paths. Base URLs of client libraries are often given without it, or twice. */
const PREFIX = '/v1';
/** Longer paths are near none. */
const MAX_COMPARED_CHARS = 256;

/** What is served here. */
export interface ServedPaths {
  readonly endpoints: ReadonlyMap<string, RecordedEndpoint>;
  readonly passes: PassedPaths;
  /** Whether GET /v1/usage is one of them. */
  readonly tellsUsage: boolean;
}

/** What the answer to a request says for which there is nothing here. */
export interface UnknownRequest {
  readonly message: string;
  /** The methods that the path takes; null: it takes none. */
  readonly allow: string | null;
}

/** Says whether the method or the path is wrong, and what was probably meant. `path`: without query. */
export function describeUnknown(method: string, path: string, served: ServedPaths): UnknownRequest {
  const shown = toShownText(path);
  const methods = methodsOf(path, served);
  if (methods.length > 0) {
    const allow = methods.join(', ');
    return { message: `${shown} does not take ${toShownText(method)}, but ${allow}.`, allow };
  }
  if (findRecordedEndpoint(path) !== undefined || path === USAGE_PATH)
    return { message: `${shown} is not switched on at this gateway.`, allow: null };
  const near = findNear(path, served);
  const hint = near === null ? '' : ` Did you mean ${methodsOf(near, served).join(', ')} ${near}?`;
  return { message: `There is no path ${shown} on this gateway.${hint}`, allow: null };
}

function methodsOf(path: string, served: ServedPaths): readonly string[] {
  const passed = PASSED_METHODS.filter((method) => served.passes.has(method, path));
  if (served.endpoints.has(path)) return [...new Set(['POST', ...passed])];
  return ownPaths(served).includes(path) ? [...new Set(['GET', ...passed])] : passed;
}

/** What the gateway answers beside the endpoints. */
function ownPaths({ tellsUsage }: ServedPaths): readonly string[] {
  return [MODELS_PATH, HEALTH_PATH, ...(tellsUsage ? [USAGE_PATH] : [])];
}

/** The served path that ends as this one does, but for its prefix, its case and its slashes; the longest of several. */
function findNear(path: string, served: ServedPaths): string | null {
  if (path.length > MAX_COMPARED_CHARS) return null;
  const wanted = path
    .toLowerCase()
    .replace(/\/{2,}/g, '/')
    .replace(/\/$/, '');
  let near: string | null = null;
  for (const known of [...served.endpoints.keys(), ...ownPaths(served)]) {
    const end = known.startsWith(`${PREFIX}/`) ? known.slice(PREFIX.length) : known;
    if (wanted.endsWith(end) && known.length > (near?.length ?? 0)) near = known;
  }
  return near;
}
