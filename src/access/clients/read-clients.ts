import { stat } from 'node:fs/promises';
import { limitsOf, MAX_LIMITED_CLIENTS } from '#access/limits';
import { UnusableSettingError } from '#base';
import { type Config, ConfigError, parseClientsFile } from '#config';
import { OddFileError, readRegularFile } from '#otel/files';

/** Half a million clients. While it is read, it takes a few times this much memory. */
const MAX_FILE_BYTES = 64 * 1024 ** 2;

/** A client of the configuration, or of the file of clients. */
type ConfiguredClient = NonNullable<Config['clients']>[number];

/** The keys of the configuration that say who may send requests. */
export type ClientSources = Pick<Config, 'clients' | 'clientsFile'>;

/** Who may send requests, as it was read. */
export interface ClientList {
  /** The clients of the configuration and those of the file; null: everyone may. */
  readonly clients: readonly ConfiguredClient[] | null;
  /** The clients of the configuration alone, and the version of the file: equal ones make the same list. */
  readonly sources: {
    readonly clients: readonly ConfiguredClient[] | null;
    readonly fileVersion: string | null;
  };
}

/**
 * Reads the file of clients, if there is one, and adds its entries to those of the configuration. Rejects with a
 * StartError of one line when the file cannot be used.
 */
export async function readClients({ clients, clientsFile }: ClientSources): Promise<ClientList> {
  if (clientsFile === null) return toList(clients, { clients, fileVersion: null });
  // A change after this look makes another version.
  const fileVersion = await readVersion(clientsFile);
  const text = (await orRefuse(clientsFile, readRegularFile(clientsFile, MAX_FILE_BYTES))).toString();
  const fromFile = await orRefuse(clientsFile, parseClientsFile(text, clientsFile, clients ?? []));
  return toList([...(clients ?? []), ...fromFile], { clients, fileVersion });
}

function toList(clients: ClientList['clients'], sources: ClientList['sources']): ClientList {
  const limitedCount = clients?.filter((client) => limitsOf(client) !== null).length ?? 0;
  if (limitedCount > MAX_LIMITED_CLIENTS) {
    throw new UnusableSettingError(
      `clients: ${limitedCount} have limits, but only ${MAX_LIMITED_CLIENTS} can`,
    );
  }
  return { clients, sources };
}

/** A text that changes with the file: where it is, how long it is, and when it was last written or replaced. */
export async function readVersion(path: string): Promise<string> {
  const stats = await orRefuse(path, stat(path, { bigint: true }));
  // To read a pipe could take forever.
  if (!stats.isFile()) throw new UnusableSettingError(`clients_file: ${path} is not a file`);
  const { dev, ino, size, mtimeNs, ctimeNs } = stats;
  return [path, dev, ino, size, mtimeNs, ctimeNs].join(' ');
}

async function orRefuse<T>(path: string, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (error instanceof ConfigError)
      throw new UnusableSettingError(`clients_file: ${toOneLine(error)}`, error);
    if (error instanceof OddFileError && error.code === 'too_large') {
      throw new UnusableSettingError(`clients_file: ${path} has more than ${MAX_FILE_BYTES} bytes`, error);
    }
    const { code } = error as NodeJS.ErrnoException;
    if (code === undefined) throw error;
    throw new UnusableSettingError(`clients_file: cannot read ${path} (${code})`, error);
  }
}

function toOneLine({ message, problems }: ConfigError): string {
  const [first = ''] = message.split('\n', 1);
  const rest = problems.length - 1;
  return rest === 0 ? first : `${first}; and ${rest} more`;
}
