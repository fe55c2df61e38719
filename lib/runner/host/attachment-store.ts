import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Attachment, attachmentPath, isTextType } from '@/lib/protocol/attachments';
import { retryMs } from '@/lib/runner/retry';
import { connectionMessage, type Endpoint, errorIn, requestServer } from '@/lib/runner/server-request';

/** An attachment whose bytes are on this machine's disk. */
export interface AttachmentFile extends Attachment {
  path: string;
}

export interface AttachmentStoreOptions {
  endpoint: Endpoint;
  /** The folder of the files; made when it is needed. */
  dir: string;
  /** The runner is stopped. */
  signal: AbortSignal;
  log: (message: string) => void;
  now?: () => number;
  /** Between attempts, after so many have failed. */
  waitMs?: (failures: number) => number;
}

const ATTEMPT_WITHIN_MS = 60_000;
/** A file that no message has asked for in so long is removed: longer than any message waits. */
const KEPT_MS = 14 * 24 * 60 * 60_000;

/** What the server says of the moment, not of the attachment. */
const PASSING = [401, 403, 408, 421, 429];

/**
 * The bytes of what messages carry, each in a file that is named by its hash.
 *
 * Failure: bytes count only if they have the hash. A message that is delivered again, also to the next process, finds its
 * file and asks the server for nothing. An unreachable server is asked without end.
 */
export class AttachmentStore {
  readonly #options: AttachmentStoreOptions;
  readonly #fetching = new Map<string, Promise<string>>();
  #isTidied = false;

  constructor(options: AttachmentStoreOptions) {
    this.#options = options;
  }

  /** @throws Error that says why, if one of them can't be had */
  async files(sessionId: string, attachments: readonly Attachment[]): Promise<AttachmentFile[]> {
    await this.#tidy();
    const files: AttachmentFile[] = [];
    // one after the other: a message carries few, and each is held in memory once
    for (const attachment of attachments) {
      const path = join(this.#options.dir, `${attachment.hash}${extensionOf(attachment.mediaType)}`);
      const fetching = this.#fetching.get(path) ?? this.#have(sessionId, attachment, path);
      this.#fetching.set(path, fetching);
      try {
        files.push({ ...attachment, path: await fetching });
      } finally {
        this.#fetching.delete(path);
      }
    }
    return files;
  }

  async #have(sessionId: string, attachment: Attachment, path: string): Promise<string> {
    const { now = Date.now } = this.#options;
    const kept = await readFile(path).catch(() => null);
    if (kept !== null && hashOf(kept) === attachment.hash) {
      const time = new Date(now());
      await utimes(path, time, time).catch(() => undefined);
      return path;
    }
    const bytes = await this.#fetch(sessionId, attachment);
    const begun = `${path}.${randomUUID()}.part`;
    try {
      await writeFile(begun, bytes, { mode: 0o600 });
      // on disk before it has its name: half a file is never found under it
      const file = await open(begun, 'r');
      await file.sync().finally(() => file.close());
      await rename(begun, path);
    } catch (error) {
      await rm(begun, { force: true });
      throw new Error(`${named(attachment)} can’t be kept: ${(error as Error).message}`);
    }
    return path;
  }

  async #fetch(sessionId: string, attachment: Attachment): Promise<Uint8Array> {
    const {
      signal,
      log,
      waitMs = (failures: number) => retryMs('unavailable', failures, Math.random()),
    } = this.#options;
    for (let failures = 1; ; failures += 1) {
      const got = await this.#attempt(sessionId, attachment);
      if ('bytes' in got) return got.bytes;
      if (got.isFinal) throw new Error(`${named(attachment)} can’t be had: ${got.reason}`);
      if (failures === 1) log(`${named(attachment)} is waited for: ${got.reason}`);
      await pause(waitMs(failures), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) throw new Error(`the runner was stopped before it had ${named(attachment)}`);
    }
  }

  async #attempt(
    sessionId: string,
    { hash, bytes: size }: Attachment,
  ): Promise<{ bytes: Uint8Array } | { reason: string; isFinal: boolean }> {
    const { endpoint, signal } = this.#options;
    try {
      const within = AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_WITHIN_MS)]);
      const response = await requestServer(endpoint, attachmentPath(hash, sessionId), { signal: within });
      if (response.status !== 200) {
        const said = errorIn(await response.text());
        const isFinal = response.status < 500 && !PASSING.includes(response.status) && said !== null;
        return { reason: said?.message ?? `the server answered ${response.status}`, isFinal };
      }
      const bytes = await bytesUpTo(response, size);
      if (bytes === null || hashOf(bytes) !== hash)
        return { reason: 'its bytes are not those of its hash', isFinal: true };
      return { bytes };
    } catch (error) {
      return { reason: connectionMessage(error), isFinal: false };
    }
  }

  /** Once for each process: makes the folder, and removes what nothing will ask for. */
  async #tidy(): Promise<void> {
    if (this.#isTidied) return;
    const { dir, now = Date.now } = this.#options;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    this.#isTidied = true;
    for (const name of await readdir(dir)) {
      const path = join(dir, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
      if (mtimeMs < now() - KEPT_MS) await rm(path, { force: true });
    }
  }
}

/** @returns null if there are more, of which no more are read */
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

function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

const EXTENSIONS: Record<string, string> = {
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/gif': '.gif',
  'image/webp': '.webp',
  'application/pdf': '.pdf',
  'application/json': '.json',
};

/** Agents tell by it how to read a file. */
function extensionOf(mediaType: string): string {
  return EXTENSIONS[mediaType] ?? (isTextType(mediaType) ? '.txt' : '');
}

function named({ name }: Attachment): string {
  return `the attachment ${JSON.stringify(name)}`;
}
