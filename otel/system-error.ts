/** The code of a system error, `ENOSPC` say; else `fallback`. Never its message, which may hold a path or an address. */
export function toErrorCode(error: unknown, fallback = 'unknown'): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : fallback;
}
