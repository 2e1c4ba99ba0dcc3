/**
 * What lets a child that inherits no environment start as quickly as one that does: the compile cache of this process, and
 * the bundle (testkit/bundle), if there are any.
 */
export function quickStart(): Readonly<Record<string, string>> {
  const { NODE_COMPILE_CACHE, NODE_OPTIONS, GATEWAY_BUNDLE } = process.env;
  return {
    ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    ...(GATEWAY_BUNDLE !== undefined && NODE_OPTIONS !== undefined && { NODE_OPTIONS, GATEWAY_BUNDLE }),
  };
}
