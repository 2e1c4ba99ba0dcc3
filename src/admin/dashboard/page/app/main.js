import { byId, setText } from '../elements/dom.js';
import { Dashboard } from './dashboard.js';
import { session } from './session.js';

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
for (const button of document.querySelectorAll('#sections button')) {
  const section = byId(button.getAttribute('data-section') ?? '', HTMLElement);
  button.addEventListener('click', () => section.scrollIntoView({ block: 'start' }));
}

if (session.token === null) tokenInput.focus();
else dashboard.begin();
