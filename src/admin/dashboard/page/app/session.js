const KEY = 'spangate.admin_token';

/** The admin token, kept until the tab is closed. It is never in the URL, because URLs end up in logs and histories. */
export const session = {
  /** @returns {string | null} */
  get token() {
    return sessionStorage.getItem(KEY);
  },

  set token(token) {
    if (token === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, token);
  },
};
