import { textOf } from './codecs.ts';

/** A method and a path that are relayed and not recorded. A path that ends in `/*` stands for all paths below it. */
export interface PassedPath {
  readonly method: string;
  readonly path: string;
}

/** A method and a path, such as `GET /version`; decodes to its parts. */
export function passedPath() {
  return textOf<PassedPath>({
    title:
      'a method and a path, such as GET /version or POST /v1/files/*; a star needs two segments before it',
    pattern: '[A-Z]+ /.*',
    parse: parsePassedPath,
    print: ({ method, path }) => `${method} ${path}`,
  });
}

/** A segment without escapes, other than `.` and `..`. */
const SEGMENT = "/(?!\\.{1,2}(?:/|$))[A-Za-z0-9._~!$&'()+,=:@-]+";
const MAX_PASSED_CHARS = 1024;
const PASSED_PATH = new RegExp(
  `^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) ((?=[^*]*$|/[^/]+/[^/]+/)(?:${SEGMENT})+(?:/\\*)?)$`,
);

/**
 * Parses `POST /v1/images/generations`, or `GET /v1/files/*` for all paths below `/v1/files/`: a method, a space, and a
 * path without query, escapes and empty segments, at least two segments before the star. Null for any other text.
 */
export function parsePassedPath(text: string): PassedPath | null {
  const [, method, path] = (text.length > MAX_PASSED_CHARS ? null : PASSED_PATH.exec(text)) ?? [];
  return method === undefined || path === undefined ? null : { method, path };
}
