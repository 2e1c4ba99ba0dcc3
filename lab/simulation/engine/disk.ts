/** A file, a directory, or the name of a listening socket. */
export type DiskNode =
  | { readonly kind: 'directory'; readonly names: Map<string, DiskNode>; changedAtMs: number }
  | { readonly kind: 'file'; content: Buffer; changedAtMs: number }
  | { readonly kind: 'socket'; readonly address: string; changedAtMs: number };

type FileNode = Extract<DiskNode, { kind: 'file' }>;

/** What is wrong with a disk. */
export type DiskFault = 'none' | 'full' | 'failing' | 'read_only';

/** An error of the file system. */
export class DiskError extends Error {
  readonly code: string;

  constructor(code: string, call: string, path: string) {
    super(`${code}: ${call} '${path}'`);
    this.code = code;
  }
}

/** The file system of one machine, in memory. It outlives the processes of the machine. */
export class Disk {
  fault: DiskFault = 'none';
  readonly #nowMs: () => number;
  readonly #root: DiskNode;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
    this.#root = { kind: 'directory', names: new Map(), changedAtMs: nowMs() };
  }

  find(path: string): DiskNode | null {
    let node: DiskNode | undefined = this.#root;
    for (const name of toNames(path)) {
      if (node?.kind !== 'directory') return null;
      node = node.names.get(name);
    }
    return node ?? null;
  }

  get(path: string, call: string): DiskNode {
    const node = this.find(path);
    if (node === null) throw new DiskError('ENOENT', call, path);
    return node;
  }

  getFile(path: string, call: string): FileNode {
    const node = this.get(path, call);
    if (node.kind === 'directory') throw new DiskError('EISDIR', call, path);
    if (node.kind === 'socket') throw new DiskError('ENXIO', call, path);
    return node;
  }

  list(path: string): readonly string[] {
    const node = this.get(path, 'scandir');
    if (node.kind !== 'directory') throw new DiskError('ENOTDIR', 'scandir', path);
    return [...node.names.keys()].sort();
  }

  makeDirectories(path: string): void {
    let made = '';
    for (const name of toNames(path)) {
      made = `${made}/${name}`;
      const there = this.find(made);
      if (there === null) {
        this.checkWritable('mkdir', made);
        this.#put(made, { kind: 'directory', names: new Map(), changedAtMs: this.#nowMs() }, 'mkdir');
      } else if (there.kind !== 'directory') throw new DiskError('EEXIST', 'mkdir', made);
    }
  }

  /** Creates an empty file, or a socket. Replaces nothing. */
  create<T extends DiskNode>(path: string, node: T, call: string): T {
    this.checkWritable(call, path);
    if (this.find(path) !== null) throw new DiskError('EEXIST', call, path);
    return this.#put(path, node, call);
  }

  createFile(path: string): FileNode {
    return this.create<FileNode>(
      path,
      { kind: 'file', content: Buffer.alloc(0), changedAtMs: this.#nowMs() },
      'open',
    );
  }

  rename(from: string, to: string): void {
    this.checkWritable('rename', from);
    const node = this.get(from, 'rename');
    this.#put(to, node, 'rename');
    this.#remove(from);
  }

  link(from: string, to: string): void {
    const node = this.get(from, 'link');
    this.create(to, node, 'link');
  }

  unlink(path: string): void {
    this.get(path, 'unlink');
    if (this.fault === 'read_only') throw new DiskError('EROFS', 'unlink', path);
    this.#remove(path);
  }

  touch(node: DiskNode): void {
    node.changedAtMs = this.#nowMs();
  }

  /** Throws what a change of the disk gets now. */
  checkWritable(call: string, path: string): void {
    if (this.fault === 'full') throw new DiskError('ENOSPC', call, path);
    if (this.fault === 'failing') throw new DiskError('EIO', call, path);
    if (this.fault === 'read_only') throw new DiskError('EROFS', call, path);
  }

  #put<T extends DiskNode>(path: string, node: T, call: string): T {
    const { directory, name } = this.#parentOf(path, call);
    directory.names.set(name, node);
    return node;
  }

  #remove(path: string): void {
    const { directory, name } = this.#parentOf(path, 'unlink');
    directory.names.delete(name);
  }

  #parentOf(path: string, call: string) {
    const names = toNames(path);
    const name = names.pop();
    const directory = this.get(`/${names.join('/')}`, call);
    if (directory.kind !== 'directory' || name === undefined) throw new DiskError('ENOTDIR', call, path);
    return { directory, name };
  }
}

function toNames(path: string): string[] {
  return path.split('/').filter((name) => name !== '' && name !== '.');
}
