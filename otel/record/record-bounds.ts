/** The most timings in a record. An engine reports about a dozen, and each is an attribute. */
export const MAX_TIMINGS = 32;
