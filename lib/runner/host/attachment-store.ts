import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { attachmentPath, isHash, isTextType } from '@interlude/protocol/attachments';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { connectionMessage, type Endpoint, errorIn, requestServer, retryMs } from './server-request';

/** An attachment on the local disk. */
export interface AttachmentFile extends Attachment {
  path: string;
}

export interface AttachmentStoreOptions {
  endpoint: Endpoint;
  /** Created on demand. */
  dir: string;
  /** Aborts when the runner stops. */
  signal: AbortSignal;
  log: (message: string) => void;
  /** Stored state of in-flight messages: text that contains the hashes of their files. */
  inFlight?: () => Promise<string>;
  now?: () => number;
  /** Delay before the next attempt. @param cause `unauthorized` or another */
  waitMs?: (failures: number, cause: string) => number;
  /** Size above which the oldest files are removed. */
  maxBytes?: number;
}

/** The runner stopped first. The next runner fetches the attachment. */
export class StoppedError extends Error {}

const ATTEMPT_WITHIN_MS = 60_000;
/** Time for which a starting source waits for files of an earlier process. */
const AGAIN_WITHIN_MS = 5_000;
const DAY_MS = 24 * 60 * 60_000;
/** Files that are unused for this long are removed. No message waits longer. */
const KEPT_MS = 14 * DAY_MS;
/** Minimum age: runners share the folder, and each touches the files of its in-flight messages daily. */
const LEAST_KEPT_MS = 2 * DAY_MS;
const MAX_BYTES = 1024 ** 3;

/** Transient responses that do not concern the attachment. */
const TRANSIENT = [401, 403, 408, 421, 429];

/**
 * Attachment files, named by their hash.
 *
 * Failure: bytes are used only if they match the hash. A redelivered message finds its file without asking the server.
 * An unreachable server is retried until the message expires.
 */
export class AttachmentStore {
  readonly #options: AttachmentStoreOptions;

  constructor(options: AttachmentStoreOptions) {
    this.#options = options;
  }

  /**
   * @param until expiry of the message, epoch milliseconds
   * @throws StoppedError if the runner stops first; Error if a file is unavailable
   */
  async files(
    sessionId: string,
    attachments: readonly Attachment[],
    until = Number.POSITIVE_INFINITY,
  ): Promise<AttachmentFile[]> {
    const files: AttachmentFile[] = [];
    // sequential: messages have few attachments, and each is held in memory once
    for (const attachment of attachments) {
      await this.#ensure(sessionId, attachment, until, this.#options.signal);
      files.push({ ...attachment, path: this.#pathOf(attachment) });
    }
    return files;
  }

  /**
   * Restores files of an earlier process, which may have used another folder. An unavailable file keeps its would-be
   * path; see `readAttachment`.
   */
  async restore(sessionId: string, files: readonly AttachmentFile[]): Promise<AttachmentFile[]> {
    const { signal, log } = this.#options;
    const soon = AbortSignal.any([signal, AbortSignal.timeout(AGAIN_WITHIN_MS)]);
    const restore = async (file: AttachmentFile) => {
      await this.#ensure(sessionId, file, Number.POSITIVE_INFINITY, soon).catch((error: Error) => log(error.message));
      return { ...file, path: this.#pathOf(file) };
    };
    return await Promise.all(files.map(restore));
  }

  /** Cleans up now and once a day. */
  startCleanup(everyMs = DAY_MS): void {
    const { signal, log } = this.#options;
    const cleanUp = () => {
      void this.#cleanUp().catch((error: Error) => log(`could not remove old attachments: ${error.message}`));
    };
    cleanUp();
    const timer = setInterval(cleanUp, everyMs).unref();
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  #pathOf({ hash, mediaType }: Attachment): string {
    return join(this.#options.dir, `${hash}${extensionOf(mediaType)}`);
  }

  async #ensure(sessionId: string, attachment: Attachment, until: number, signal: AbortSignal): Promise<void> {
    const { dir, now = Date.now } = this.#options;
    const path = this.#pathOf(attachment);
    const stored = await readFile(path).catch(() => null);
    if (stored !== null && hashOf(stored) === attachment.hash) {
      const time = new Date(now());
      await utimes(path, time, time).catch(() => undefined);
      return;
    }
    const bytes = await this.#fetch(sessionId, attachment, until, signal);
    const partial = `${path}.${randomUUID()}.part`;
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await writeFile(partial, bytes, { mode: 0o600 });
      // synced before the rename, so that no partial file gets the final name
      const file = await open(partial, 'r');
      await file.sync().finally(() => file.close());
      await rename(partial, path);
    } catch (error) {
      await rm(partial, { force: true });
      throw new Error(`${named(attachment)} can’t be stored: ${(error as Error).message}`);
    }
  }

  /** @param signal aborts when the result is no longer needed, including when the runner stops */
  async #fetch(sessionId: string, attachment: Attachment, until: number, signal: AbortSignal): Promise<Uint8Array> {
    const {
      signal: stopping,
      log,
      now = Date.now,
      waitMs = (failures: number, cause: string) => retryMs(cause, failures, Math.random()),
    } = this.#options;
    const logged = new Set<string>();
    for (let failures = 1; ; failures += 1) {
      const result = await this.#attempt(sessionId, attachment, signal);
      if ('bytes' in result) return result.bytes;
      if (stopping.aborted) throw new StoppedError(`the runner stopped before it received ${named(attachment)}`);
      const { reason, isFinal = false, cause = 'unavailable' } = result;
      const remainingMs = until - now();
      if (isFinal || signal.aborted) throw new Error(`${named(attachment)} is unavailable: ${reason}`);
      if (remainingMs <= 0) throw new Error(`the message expired before ${named(attachment)} was available: ${reason}`);
      if (!logged.has(reason)) log(`${named(attachment)} is not available yet: ${reason}`);
      logged.add(reason);
      await pause(Math.min(waitMs(failures, cause), remainingMs), undefined, { signal }).catch(() => undefined);
    }
  }

  async #attempt(
    sessionId: string,
    { hash, bytes: size }: Attachment,
    signal: AbortSignal,
  ): Promise<{ bytes: Uint8Array } | { reason: string; isFinal?: boolean; cause?: string }> {
    const { endpoint } = this.#options;
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_WITHIN_MS)]);
      const response = await requestServer(endpoint, attachmentPath(hash, sessionId), { signal: within });
      const { status } = response;
      if (status !== 200) {
        const error = errorIn(await response.text());
        const isFinal = status < 500 && !TRANSIENT.includes(status) && error !== null;
        const cause = status === 401 || status === 403 ? 'unauthorized' : 'unavailable';
        return { reason: error?.message ?? `the server answered ${status}`, isFinal, cause };
      }
      const bytes = await bytesUpTo(response, size);
      if (bytes === null || hashOf(bytes) !== hash) return { reason: 'its bytes do not match its hash', isFinal: true };
      return { bytes };
    } catch (error) {
      return { reason: connectionMessage(error) };
    }
  }

  /** Removes unused files, and the oldest ones above the size limit. */
  async #cleanUp(): Promise<void> {
    const { dir, inFlight = async () => '', now = Date.now, maxBytes = MAX_BYTES } = this.#options;
    const names = await readdir(dir).catch(() => []);
    if (names.length === 0) return;
    const wanted = await inFlight();
    const files: { path: string; bytes: number; ageMs: number }[] = [];
    for (const name of names) {
      const path = join(dir, name);
      const found = await stat(path).catch(() => null);
      if (found === null) continue;
      const hash = name.slice(0, 64);
      const isWanted = isHash(hash) && wanted.includes(hash);
      if (isWanted) await utimes(path, new Date(now()), new Date(now())).catch(() => undefined);
      files.push({ path, bytes: found.size, ageMs: isWanted ? 0 : now() - found.mtimeMs });
    }
    let bytes = 0;
    for (const file of files.toSorted((a, b) => a.ageMs - b.ageMs)) {
      bytes += file.bytes;
      const isTooMuch = bytes > maxBytes && file.ageMs > LEAST_KEPT_MS;
      if (file.ageMs > KEPT_MS || isTooMuch) await rm(file.path, { force: true });
    }
  }
}

/** @returns null if the body is longer */
async function bytesUpTo({ body }: Response, most: number): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    size += chunk.byteLength;
    if (size > most) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

const EXTENSIONS: Record<string, string> = {
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/gif': '.gif',
  'image/webp': '.webp',
  'application/pdf': '.pdf',
  'application/json': '.json',
};

/** Agents choose a reader by extension. */
function extensionOf(mediaType: string): string {
  return EXTENSIONS[mediaType] ?? (isTextType(mediaType) ? '.txt' : '');
}

function named({ name }: Attachment): string {
  return `the attachment ${JSON.stringify(name)}`;
}

/** SHA-256 in lower-case hex. */
export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Longer texts are passed by path, to save context. */
export const MAX_TEXT_BYTES = 64 * 1024;

/**
 * Appends file paths to a message, for files that can't be embedded.
 * @param lost files missing on disk, listed as missing
 */
export function withFileList(
  text: string,
  files: readonly AttachmentFile[],
  lost: readonly AttachmentFile[] = [],
): string {
  const lines = files.map((file) => `- ${describe(file)}: ${file.path}`);
  const named = files.length === 0 ? '' : `\n\nAttached to this message:\n${lines.join('\n')}`;
  return `${text}${named}${lost.length === 0 ? '' : `\n\n${missingFilesText(lost)}`}`;
}

export function missingFilesText(files: readonly Attachment[]): string {
  const lines = files.map((file) => `- ${describe(file)}`);
  return `Attached to this message, but lost before delivery:\n${lines.join('\n')}`;
}

function describe({ name, mediaType, bytes }: Attachment): string {
  return `${JSON.stringify(name)} (${mediaType}, ${bytes} bytes)`;
}
