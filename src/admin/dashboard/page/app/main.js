import { byId, setText } from '../elements/dom.js';
import { openSession } from './api.js';
import { Dashboard } from './dashboard.js';
import { session } from './session.js';
import { takeSignInCode } from './sign-in-link.js';

const linkCode = takeSignInCode();

const tokenInput = byId('token', HTMLInputElement);
const signInError = byId('sign-in-error', HTMLElement);

const dashboard = new Dashboard({
  pollIntervalMs: Number(document.body.dataset.pollIntervalMs),
  onSessionEnd(problem) {
    setText(signInError, problem);
    tokenInput.value = '';
    tokenInput.focus();
  },
});

byId('sign-in-form', HTMLFormElement).addEventListener('submit', (event) => {
  event.preventDefault();
  setText(signInError, '');
  session.token = tokenInput.value.trim();
  tokenInput.value = '';
  dashboard.begin();
});
byId('sign-out', HTMLButtonElement).addEventListener('click', () => dashboard.endSession(''));
byId('try-now', HTMLButtonElement).addEventListener('click', () => dashboard.refreshNow());
byId('retry', HTMLButtonElement).addEventListener('click', () => dashboard.begin());
for (const button of document.querySelectorAll('#sections [data-section]'))
  button.addEventListener('click', () => dashboard.goTo(button.getAttribute('data-section') ?? ''));

window.addEventListener('hashchange', () => {
  const code = takeSignInCode();
  if (code !== null) void begin(code);
});
void begin(linkCode);

/**
 * Begins with the code of a link, or with the token of the tab, or with the form.
 * @param {string | null} code
 */
async function begin(code) {
  const result = code === null ? null : await openSession(code);
  if (result?.kind === 'ok') session.token = result.value.token;
  if (session.token !== null) dashboard.begin();
  else if (result === null) tokenInput.focus();
  else if (result.kind === 'unauthorized')
    dashboard.endSession(
      'This link was used already, or is too old. Enter a token, or ask for another link.',
    );
  else dashboard.endSession(result.kind === 'failed' ? result.message : 'The admin API is off.');
}
