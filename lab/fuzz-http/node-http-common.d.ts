/** The part of Node's own parser that the fuzzer uses. It is not documented: a test would fail if it changed. */
declare module 'node:_http_common' {
  export class HTTPParser {
    static readonly REQUEST: 1;
    static readonly RESPONSE: 2;
    static readonly kOnMessageBegin: 0;
    static readonly kOnHeaders: 1;
    static readonly kOnHeadersComplete: 2;
    static readonly kOnBody: 3;
    static readonly kOnMessageComplete: 4;
    static readonly kLenientNone: 0;

    /** Starts over. `maxHeaderBytes` bounds a head, `lenientFlags` say what is allowed beyond the grammar. */
    initialize(side: 1 | 2, resource: object, maxHeaderBytes: number, lenientFlags: number): void;
    /** Returns how many bytes were read, or what is wrong with them. */
    execute(bytes: Buffer): number | (Error & { readonly bytesParsed: number });
    /** The peer ended its side. */
    finish(): Error | undefined;

    [HTTPParser.kOnMessageBegin]: () => void;
    /** Some of the fields of a head that has many, or trailer fields. */
    [HTTPParser.kOnHeaders]: (flatFields: readonly string[], url: string) => void;
    /** Returns 1 when no body follows, whatever the head says. */
    [HTTPParser.kOnHeadersComplete]: (
      versionMajor: number,
      versionMinor: number,
      flatFields: readonly string[] | undefined,
      method: number | undefined,
      url: string | undefined,
      statusCode: number | undefined,
      statusMessage: string | undefined,
      isUpgrade: boolean,
      shouldKeepAlive: boolean,
    ) => 0 | 1;
    [HTTPParser.kOnBody]: (bytes: Buffer) => void;
    [HTTPParser.kOnMessageComplete]: () => void;
  }
}
