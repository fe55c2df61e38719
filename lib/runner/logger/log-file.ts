import { closeSync, fstatSync, mkdirSync, openSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';

export interface LogFileOptions {
  /** A file that would grow beyond this is put aside first. Default 10 MiB. */
  maxBytes?: number;
  /** How many are kept beside the one written to: `.1` is the newest. Default 5. */
  keep?: number;
}

/**
 * A file that lines are appended to, with rotation by size.
 *
 * Ordering: a line is in the kernel's hands when `write` returns, so a crash right after it loses nothing.
 * Failure: `write` throws; the next one opens the file anew. A file that was moved or deleted by somebody else is made
 * again within a second.
 */
export class LogFile {
  readonly file: string;
  readonly #maxBytes: number;
  readonly #keep: number;
  #fd: number | null = null;
  #bytes = 0;
  #lookedAt = 0;

  constructor(file: string, { maxBytes = 10 * 1024 * 1024, keep = 5 }: LogFileOptions = {}) {
    this.file = file;
    this.#maxBytes = maxBytes;
    this.#keep = keep;
  }

  write(line: string): void {
    const bytes = Buffer.from(`${line}\n`);
    try {
      this.#open();
      if (this.#bytes > 0 && this.#bytes + bytes.length > this.#maxBytes) this.#rotate();
      let written = 0;
      while (written < bytes.length) written += writeSync(this.#fd as number, bytes, written);
      this.#bytes += bytes.length;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    const fd = this.#fd;
    this.#fd = null;
    if (fd === null) return;
    try {
      closeSync(fd);
    } catch {
      // it is gone either way
    }
  }

  #open(): void {
    if (this.#fd !== null && !this.#isStillThere()) this.close();
    if (this.#fd !== null) return;
    mkdirSync(dirname(this.file), { recursive: true, mode: 0o700 });
    this.#fd = openSync(this.file, 'a', 0o600);
    this.#bytes = fstatSync(this.#fd).size;
  }

  #isStillThere(): boolean {
    const now = Date.now();
    if (now - this.#lookedAt < 1_000 && now >= this.#lookedAt) return true;
    this.#lookedAt = now;
    const there = statSync(this.file, { throwIfNoEntry: false });
    return there !== undefined && there.ino === fstatSync(this.#fd as number).ino;
  }

  #rotate(): void {
    this.close();
    rmSync(`${this.file}.${this.#keep}`, { force: true });
    for (let number = this.#keep - 1; number >= 1; number -= 1) moveIfThere(`${this.file}.${number}`, number + 1);
    if (this.#keep > 0) renameSync(this.file, `${this.file}.1`);
    else rmSync(this.file, { force: true });
    this.#open();

    function moveIfThere(file: string, to: number): void {
      if (statSync(file, { throwIfNoEntry: false })) renameSync(file, file.replace(/\d+$/, String(to)));
    }
  }
}
