/*
 * JSON read from bytes, strictly and without building values: a cursor over a whole text, a lexer for text that
 * arrives in pieces, a scanner for the members that a reader wants.
 *
 * It never knows HTTP, and allocates nothing that outlives a text.
 * Begin with cursor.ts for whole texts and member-scanner.ts for streams.
 */

export { JsonCursor, type Span } from './cursor.ts';
export { JsonLexer, JsonSyntaxError } from './lexer.ts';
export { allowAtMost, type MemberAllowance, MemberLimitError } from './member-allowance.ts';
export { MemberScanner, type WantedMembers } from './member-scanner.ts';
export { readCount, readMemberOf, readText } from './read-value.ts';
