import module from 'node:module';

/*
 * Loaded into each process and thread of the tests (see gateway-bundle.ts): where one starts with a source file of the gateway,
 * the bundle starts. It is JavaScript, and asks for what it needs, because NODE_OPTIONS reaches every Node that a test
 * starts, of whatever version.
 */

/** From the URL of a source file to that of its bundle. */
const STARTED = new Map(Object.entries(JSON.parse(process.env.GATEWAY_BUNDLE ?? '{}')));

module.registerHooks?.({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    const url = STARTED.get(resolved.url);
    return url === undefined ? resolved : { ...resolved, url, format: 'module' };
  },
});
