/** So many timings are in a record, at most: an engine reports about a dozen, and each is an attribute. */
export const MAX_TIMINGS = 32;

/** A name from outside is cut to so many UTF-16 units. */
export const MAX_NAME_CHARS = 256;
