const { NODE_COMPILE_CACHE } = process.env;

/** Environment of a child that otherwise inherits none: it uses the compile cache of this process, if there is one. */
export const COMPILE_CACHE: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };
