/** The most timings in a record. An engine reports about a dozen, and each is an attribute. */
export const MAX_TIMINGS = 32;

/** The most UTF-16 units of a name from outside. Longer names are cut. */
export const MAX_NAME_CHARS = 256;
