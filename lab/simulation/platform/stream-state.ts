/**
 * What a handle of the system and Node's `net.Socket` tell each other beside the arguments of their calls: an array that
 * both read and write. `process.binding` is how a program gets it (DEP0111 speaks against its use; a simulated handle has
 * no other way to be read by the real `net.Socket`).
 */
interface StreamWrap {
  readonly streamBaseState: Int32Array;
  readonly kReadBytesOrError: number;
  readonly kArrayBufferOffset: number;
  readonly kBytesWritten: number;
  readonly kLastWriteWasAsync: number;
}

type Binding = (name: string) => unknown;

const binding = (process as unknown as { readonly binding: Binding }).binding.bind(process);
const wrap = binding('stream_wrap') as StreamWrap;
const uv = binding('uv') as Readonly<Record<string, number>>;

/** The number of a system error, such as -104 for ECONNRESET. */
export function toErrorNumber(code: string): number {
  const number = uv[`UV_${code}`];
  if (number === undefined) throw new RangeError(`there is no system error ${code}`);
  return number;
}

export const END_OF_FILE = toErrorNumber('EOF');

/** Tells the socket how many bytes a read has, or its error. */
export function setRead(bytesOrError: number): void {
  wrap.streamBaseState[wrap.kReadBytesOrError] = bytesOrError;
  wrap.streamBaseState[wrap.kArrayBufferOffset] = 0;
}

/** Tells the socket what became of a write. The error of the last write is the element after the named ones. */
export function setWritten(bytes: number, isAsync: boolean): void {
  wrap.streamBaseState[wrap.kBytesWritten] = bytes;
  wrap.streamBaseState[wrap.kLastWriteWasAsync] = isAsync ? 1 : 0;
  wrap.streamBaseState.fill(0, wrap.kLastWriteWasAsync + 1);
}
