const { NODE_COMPILE_CACHE, NODE_OPTIONS, GATEWAY_BUNDLE } = process.env;

/**
 * Environment of a child that otherwise inherits none: it uses the compile cache of this process and the bundle
 * (testkit/bundle), if there are any.
 */
export const COMPILE_CACHE: Readonly<Record<string, string>> = {
  ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
  ...(GATEWAY_BUNDLE !== undefined && NODE_OPTIONS !== undefined && { NODE_OPTIONS, GATEWAY_BUNDLE }),
};
