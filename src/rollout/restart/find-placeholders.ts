/**
 * Where a placeholder stands in a command of the shell. `word`: in a word without quotes. `unclear`: behind something
 * after which shells do not agree, or that is not followed here.
 */
export type Place =
  | 'word'
  | 'single quotes'
  | 'double quotes'
  | 'a substitution'
  | 'a here-document'
  | 'a comment'
  | 'unclear';

/** A placeholder such as `{name}`, and where it is. */
export interface FoundPlaceholder {
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly place: Place;
}

/**
 * Finds the placeholders of a command, in its order, and reads as much of the shell's grammar (POSIX, XCU 2.2 and 2.3)
 * as it takes to say where each of them is. Where dash and bash read differently, or more of the grammar would be
 * needed, all that follows is `unclear`. Which are refused: fill-command.ts.
 */
export function findPlaceholders(command: string): readonly FoundPlaceholder[] {
  return new PlaceReader(command).read();
}

const PLACEHOLDER = /\{([A-Za-z_]+)\}/y;
const PLAIN_PARAMETER = /\$\{#?\w+\}/y;
const SPECIAL_PARAMETER = /\$[?$!#*@\d-]/y;
const CASE = /case\s/y;
const UNCLEAR = /\$(?:[{['(])/y;
const UNCLEAR_IN_QUOTES = /\$(?:[{[(])/y;
/** Arithmetic and substitutions of processes. */
const OF_BASH = /\(\(|[<>]\(/y;
const BLANK = /[ \t\n]/;
/** Behind these a word begins. */
const OPERATORS = ';&|()<>';

class PlaceReader {
  readonly #text: string;
  readonly #found: FoundPlaceholder[] = [];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): readonly FoundPlaceholder[] {
    this.#readCommands('word', false);
    return this.#found;
  }

  /** Reads to the parenthesis that closes, or to the end of the text. */
  #readCommands(place: Place, isInParentheses: boolean): void {
    const text = this.#text;
    let isWordStart = true;
    while (this.#at < text.length) {
      const char = text[this.#at] ?? '';
      const wasWordStart = isWordStart;
      isWordStart = BLANK.test(char) || OPERATORS.includes(char);
      if (this.#take(PLACEHOLDER, place)) continue;
      if (char === '\\') {
        if (text[this.#at + 1] === '\n') isWordStart = wasWordStart;
        this.#readEscape();
      } else if (char === "'") this.#readSingleQuotes();
      else if (char === '"') this.#readDoubleQuotes();
      else if (char === '`') this.#readBackticks();
      else if (char === '$') this.#readDollar(false);
      else if (char === '#' && wasWordStart) this.#readComment(place);
      else if (text.startsWith('<<', this.#at)) this.#giveUp('a here-document');
      else if (this.#is(OF_BASH)) this.#giveUp('unclear');
      else if (char === '(') this.#readParentheses(1, place);
      // The pattern of a `case` has a parenthesis that closes nothing.
      else if (place !== 'word' && wasWordStart && this.#is(CASE)) this.#giveUp('unclear');
      else {
        this.#at++;
        if (char === ')' && isInParentheses) return;
      }
    }
  }

  #readParentheses(openLength: number, place: Place): void {
    this.#at += openLength;
    this.#readCommands(place, true);
  }

  /** A backslash and the character behind it. One before a line feed joins what is left and right of it. */
  #readEscape(): void {
    const [before = ' ', escaped, after = ' '] = this.#neighbours();
    if (escaped === '\n' && !BLANK.test(before) && !BLANK.test(after)) this.#giveUp('unclear');
    this.#at += 2;
  }

  #neighbours(): readonly (string | undefined)[] {
    return [this.#text[this.#at - 1], this.#text[this.#at + 1], this.#text[this.#at + 2]];
  }

  #readSingleQuotes(): void {
    this.#at++;
    const end = this.#text.indexOf("'", this.#at);
    this.#takeAll('single quotes', end === -1 ? this.#text.length : end);
    this.#at++;
  }

  #readDoubleQuotes(): void {
    this.#at++;
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at];
      if (this.#take(PLACEHOLDER, 'double quotes')) continue;
      if (char === '\\') this.#readEscape();
      else if (char === '`') this.#readBackticks();
      else if (char === '$') this.#readDollar(true);
      else {
        this.#at++;
        if (char === '"') return;
      }
    }
  }

  #readDollar(isQuoted: boolean): void {
    if (this.#skip(PLAIN_PARAMETER) || this.#skip(SPECIAL_PARAMETER)) return;
    if (this.#text.startsWith('$(', this.#at) && !this.#text.startsWith('$((', this.#at))
      this.#readParentheses(2, 'a substitution');
    // The word in `${name:-word}`; quotes with escapes, and old arithmetic, for bash but not for dash.
    else if (this.#is(isQuoted ? UNCLEAR_IN_QUOTES : UNCLEAR)) this.#giveUp('unclear');
    else this.#at++;
  }

  /** What is quoted or escaped in backticks, and so where they end, is not followed. */
  #readBackticks(): void {
    this.#at++;
    const end = this.#text.indexOf('`', this.#at);
    this.#takeAll('a substitution', end === -1 ? this.#text.length : end);
    this.#giveUp('unclear');
  }

  /** Shells do not agree on comments in substitutions. */
  #readComment(place: Place): void {
    if (place !== 'word') this.#giveUp('unclear');
    const end = this.#text.indexOf('\n', this.#at);
    this.#takeAll('a comment', end === -1 ? this.#text.length : end);
  }

  #giveUp(place: Place): void {
    this.#takeAll(place, this.#text.length);
  }

  /** Takes the placeholders before `end`, and goes there. */
  #takeAll(place: Place, end: number): void {
    while (this.#at < end) {
      if (!this.#take(PLACEHOLDER, place)) this.#at++;
    }
  }

  #take(pattern: RegExp, place: Place): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) return false;
    const end = this.#at + found[0].length;
    this.#found.push({ name: found[1] ?? '', start: this.#at, end, place });
    this.#at = end;
    return true;
  }

  #skip(pattern: RegExp): boolean {
    if (!this.#is(pattern)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  /** Whether the pattern matches here. */
  #is(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    return pattern.test(this.#text);
  }
}
