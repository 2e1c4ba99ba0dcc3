import { orStartError, UnusableSettingError } from '#base';
import { TelemetrySettingError } from '#otel/base';

/**
 * Awaits `work`. A rejection becomes an UnusableSettingError if a setting of the export is wrong, otherwise a StartError.
 * `what` begins the message.
 */
export async function orTelemetryError<T>(what: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TelemetrySettingError) {
      throw new UnusableSettingError(`${what}: ${error.message}`, error);
    }
    return await orStartError(what, Promise.reject(error));
  }
}
