/** A link ends with this and a code that signs in once. */
const LINK = /^#sign-in=([\w-]{1,128})$/;

/**
 * Takes the code of a link out of the URL, so that neither the history nor a bookmark has it.
 * @returns {string | null} null: the URL has none
 */
export function takeSignInCode() {
  const code = LINK.exec(location.hash)?.[1] ?? null;
  if (code !== null) history.replaceState(null, '', location.pathname + location.search);
  return code;
}
