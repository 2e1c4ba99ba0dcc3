/** @import { Overview } from '../../overview.ts' */
import { byId, setAttribute, setText } from '../elements/dom.js';
import { counted, formatAgo, formatMoment } from '../elements/format.js';

const PRODUCT = 'Spangate';

/** Which gateway the page shows, in the header and in the title of the tab. */
export class GatewayHeader {
  #name = byId('gateway-name', HTMLElement);
  #facts = byId('gateway-facts', HTMLElement);

  /**
   * @param {Overview} overview
   * @param {boolean} isWrong whether the tab shows that something is wrong
   */
  show({ gateway, time }, isWrong) {
    setText(this.#name, gateway.name);
    const facts = [
      // The name is the host's, unless it is configured.
      ...(gateway.host === gateway.name ? [] : [gateway.host]),
      `version ${gateway.version}`,
      `up ${formatAgo(Date.parse(time) - Date.parse(gateway.started_at))}`,
      `config of ${formatMoment(gateway.config_loaded_at, time)}`,
    ];
    // A fact is never broken over two lines.
    setText(this.#facts, facts.map((fact) => fact.replaceAll(' ', '\u00a0')).join(' · '));
    const details = [
      `process ${gateway.pid} on ${gateway.host}, ${counted(gateway.workers, 'worker')}`,
      `started ${gateway.started_at}`,
      `configuration loaded ${gateway.config_loaded_at}`,
    ];
    setAttribute(this.#facts, 'title', details.join('\n'));
    showTitle(gateway.name, isWrong);
  }

  /** Marks the tab, because the gateway does not answer. */
  showLost() {
    showTitle(this.#name.textContent, true);
  }

  /** Shows no gateway. */
  clear() {
    setText(this.#name, '');
    setText(this.#facts, '');
    showTitle('', false);
  }
}

/**
 * @param {string} name
 * @param {boolean} isWrong
 */
function showTitle(name, isWrong) {
  const title = name === '' ? PRODUCT : `${name} · ${PRODUCT}`;
  document.title = isWrong ? `⚠ ${title}` : title;
}
