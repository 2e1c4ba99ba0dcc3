/** What separates the messages of a hashed text: docs/internals/prefix-hashes.md. */
export const RECORD_SEPARATOR = Buffer.from('\u001e');
/** Follows a role, and ends a message. */
export const LINE_FEED = Buffer.from('\n');
export const NOTHING = Buffer.alloc(0);

/** The roles of texts that an API takes outside of its list of messages. */
export const SYSTEM = Buffer.from('system');
export const USER = Buffer.from('user');
