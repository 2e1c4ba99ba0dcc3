import type { Route } from './route.ts';

/** A route and what its pattern's parameters stand for. */
export interface RouteMatch {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

/**
 * Creates the search for a call's route; null if there is none, whether for the path or for the method.
 * HEAD asks GET's route (RFC 9110 9.3.2). There is no answer to OPTIONS: the dashboard has the API's own origin,
 * and a page of another origin has no business here.
 */
export function createRouteMatcher(
  routes: readonly Route[],
): (method: string, path: string) => RouteMatch | null {
  const rows = routes.map((route) => ({ route, pattern: toPattern(route.path) }));
  return (method, path) => {
    const wanted = method === 'HEAD' ? 'GET' : method;
    for (const { route, pattern } of rows) {
      const found = route.method === wanted ? pattern.exec(path) : null;
      if (found !== null) return { route, params: decodeAll(found.groups ?? {}) };
    }
    return null;
  };
}

/** A segment in braces is any one segment: the pattern `/admin/replicas/{name}/drain` in a regular expression. */
function toPattern(path: string): RegExp {
  const segments = path.split('/').map((segment) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    return name === undefined ? RegExp.escape(segment) : `(?<${name}>[^/]+)`;
  });
  return new RegExp(`^${segments.join('/')}$`);
}

function decodeAll(groups: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(groups).map(([name, value]) => [name, decode(value)]));
}

/** What cannot be decoded stays as it is: it names nothing, so the route says that there is no such thing. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
