import { closeSync, openSync, writeSync } from 'node:fs';
import { isObject } from '@interlude/protocol/fields';
import { CliError, EXIT } from '../cli/exit';
import type { Redactor } from '../logger/redactor';

/**
 * What passes between a source and its agent, one JSON line a frame, for `interlude replay`: so that anybody can send in
 * what they saw. Secrets are taken out of every text and every name before it is written.
 *
 * Failure: a disk that takes no more ends the recording, which is said once; the runner goes on.
 */
const MAX_DEPTH = 200;

const WHY_NOT: Record<string, string> = {
  EEXIST: 'it exists already; name another one',
  ENOENT: 'there is no such folder; make it first',
  EACCES: 'its folder may not be written to; name another one',
};

export class Recorder {
  readonly #file: number;
  readonly #redactor: Redactor;
  readonly #startedAt = performance.now();
  #failed = false;

  /** @throws CliError if there is such a file already, or none can be made */
  static open(path: string, redactor: Redactor): Recorder {
    try {
      return new Recorder(openSync(path, 'wx', 0o600), redactor);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const why = WHY_NOT[code ?? ''] ?? code;
      throw new CliError(EXIT.failed, `no recording can be made in ${path}: ${why}`);
    }
  }

  private constructor(file: number, redactor: Redactor) {
    this.#file = file;
    this.#redactor = redactor;
  }

  /** @param fields of the line, besides its time: `dir` and `msg`, or what the recordings of its kind have */
  readonly write = (fields: object): void => {
    if (this.#failed) return;
    const at = Math.round(performance.now() - this.#startedAt);
    const line = { at, ...(this.#withoutSecrets({ ...fields }) as object) };
    try {
      writeSync(this.#file, `${JSON.stringify(line)}\n`);
    } catch (error) {
      this.#failed = true;
      process.stderr.write(`interlude: the recording ends here: ${(error as Error).message}\n`);
    }
  };

  close(): void {
    this.#failed = true;
    closeSync(this.#file);
  }

  /** Of `"api_key": "…"` the name says that the value is a secret, so both are looked at together. */
  #withoutSecrets(value: unknown, name = '', depth = 0): unknown {
    // Deeper, it is text: no frame may be the end of the recording, or of the runner.
    if (depth > MAX_DEPTH) return this.#clean(safeJson(value), name);
    if (typeof value === 'string') return this.#clean(value, name);
    if (Array.isArray(value)) return value.map((one) => this.#withoutSecrets(one, name, depth + 1));
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [this.#clean(key), this.#withoutSecrets(one, key, depth + 1)]),
    );
  }

  #clean(text: string, name = ''): string {
    const before = name === '' ? '' : `${name}=`;
    const spans = this.#redactor.find(before + text);
    if (spans.length === 0) return text;
    const parts: string[] = [];
    let at = before.length;
    for (const { start, end, kind } of spans) {
      if (end <= before.length) continue;
      parts.push((before + text).slice(at, Math.max(at, start)), `[redacted: ${kind}]`);
      at = end;
    }
    return parts.join('') + (before + text).slice(at);
  }
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '[nested too deep to be written down]';
  }
}
