import { byId, setAttribute, setText } from '../elements/dom.js';

/** The state of the page. */
/** @typedef {'signed_out' | 'loading' | 'live' | 'lost' | 'disabled'} Phase */

/** @type {Readonly<Record<Phase, string>>} */
const CONNECTION = {
  signed_out: '',
  loading: 'Connecting',
  live: 'Live',
  lost: 'Reconnecting',
  disabled: '',
};

/** Shows the part of the page that belongs to its state. */
export class PhaseView {
  #signIn = byId('sign-in', HTMLElement);
  #disabled = byId('disabled', HTMLElement);
  #overview = byId('overview', HTMLElement);
  #sections = byId('sections', HTMLElement);
  #connection = byId('connection', HTMLElement);
  #lost = byId('lost', HTMLElement);
  #signOut = byId('sign-out', HTMLElement);

  /**
   * @param {Phase} phase
   * @param {{ readonly isSignedIn: boolean, readonly hasData: boolean, readonly isReadOnly: boolean }} session
   */
  show(phase, { isSignedIn, hasData, isReadOnly }) {
    document.body.dataset.phase = phase;
    document.body.dataset.access = isReadOnly ? 'read' : 'change';
    this.#signIn.hidden = phase !== 'signed_out';
    this.#disabled.hidden = phase !== 'disabled';
    this.#overview.hidden = !(phase === 'loading' || phase === 'live' || phase === 'lost');
    this.#sections.hidden = this.#overview.hidden || !hasData;
    setAttribute(this.#overview, 'aria-busy', hasData ? null : 'true');
    this.#lost.hidden = phase !== 'lost';
    this.#signOut.hidden = !isSignedIn;
    const isLiveReadOnly = isReadOnly && phase === 'live';
    setText(this.#connection, isLiveReadOnly ? `${CONNECTION.live}, read-only` : CONNECTION[phase]);
  }
}
