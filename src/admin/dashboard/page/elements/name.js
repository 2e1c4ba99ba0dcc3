import { create, setAttribute, setText } from './dom.js';

/** Names of pods differ at their end, so the last characters always stay visible. */
const END_CHARS = 9;

/**
 * An element that shows a name on one line. A name that does not fit is cut in its middle; the title has all of it.
 * @param {string} className
 * @returns {{ readonly element: HTMLElement, show(name: string, title?: string): void }}
 */
export function createName(className) {
  const start = create('span', { class: 'name-start' });
  const end = create('span', { class: 'name-end' });
  const element = create('span', { class: `name ${className}` }, start, end);
  return {
    element,
    show(name, title = name) {
      // An array of code points, so that no character is split.
      const characters = [...name];
      const cut = characters.length > 2 * END_CHARS ? characters.length - END_CHARS : characters.length;
      setText(start, characters.slice(0, cut).join(''));
      setText(end, characters.slice(cut).join(''));
      setAttribute(element, 'title', title);
    },
  };
}

/**
 * A name that does not change.
 * @param {string} className
 * @param {string} name
 */
export function nameElement(className, name) {
  const { element, show } = createName(className);
  show(name);
  return element;
}
