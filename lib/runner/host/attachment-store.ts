import { createHash, randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, open, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Attachment, attachmentPath, isHash, isTextType } from '@interlude/protocol/attachments';
import { retryMs } from '../retry';
import { connectionMessage, type Endpoint, errorIn, requestServer } from '../server-request';

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
  /** What is stored of messages in hand, as text in which the hashes of their files stand. */
  inHand?: () => Promise<string>;
  now?: () => number;
  /** Between attempts, after so many have failed. @param cause of the last one: `unauthorized`, or another */
  waitMs?: (failures: number, cause: string) => number;
  /** Of all files together, beyond which the oldest are removed. */
  maxBytes?: number;
}

/** The runner was stopped meanwhile: what became of it is for the next one to find out. */
export class StoppedError extends Error {}

const ATTEMPT_WITHIN_MS = 60_000;
/** How long a source that starts waits for what an earlier process had on its disk. */
const AGAIN_WITHIN_MS = 5_000;
const DAY_MS = 24 * 60 * 60_000;
/** A file that no message has asked for in so long is removed: longer than any message waits. */
const KEPT_MS = 14 * DAY_MS;
/** And none before that: runners share the folder, and each touches what its messages in hand name once a day. */
const LEAST_KEPT_MS = 2 * DAY_MS;
const MAX_BYTES = 1024 ** 3;

/** What the server says of the moment, not of the attachment. */
const PASSING = [401, 403, 408, 421, 429];

/**
 * The bytes of what messages carry, each in a file that is named by its hash.
 *
 * Failure: bytes count only if they have the hash. A message that is delivered again, also to the next process, finds its
 * file and asks the server for nothing. A server that can't be reached, or does not answer as Interlude, is asked until the
 * message expires.
 */
export class AttachmentStore {
  readonly #options: AttachmentStoreOptions;

  constructor(options: AttachmentStoreOptions) {
    this.#options = options;
  }

  /**
   * @param until when nobody waits for them any more, in epoch milliseconds
   * @throws StoppedError if the runner is stopped first; Error that says why, if one of them can't be had
   */
  async files(
    sessionId: string,
    attachments: readonly Attachment[],
    until = Number.POSITIVE_INFINITY,
  ): Promise<AttachmentFile[]> {
    const files: AttachmentFile[] = [];
    // one after the other: a message carries few, and each is held in memory once
    for (const attachment of attachments) {
      await this.#have(sessionId, attachment, until, this.#options.signal);
      files.push({ ...attachment, path: this.#pathOf(attachment) });
    }
    return files;
  }

  /**
   * Files that an earlier process had, in a folder that may have been another one. What can't be had soon has the place
   * where it would be, and nothing there: see `attachedBytes`.
   */
  async again(sessionId: string, files: readonly AttachmentFile[]): Promise<AttachmentFile[]> {
    const { signal, log } = this.#options;
    const soon = AbortSignal.any([signal, AbortSignal.timeout(AGAIN_WITHIN_MS)]);
    const have = async (file: AttachmentFile) => {
      await this.#have(sessionId, file, Number.POSITIVE_INFINITY, soon).catch((error: Error) => log(error.message));
      return { ...file, path: this.#pathOf(file) };
    };
    return await Promise.all(files.map(have));
  }

  /** Now and once a day, until the runner is stopped. */
  keepTidy(everyMs = DAY_MS): void {
    const { signal, log } = this.#options;
    const tidy = () => {
      void this.#tidy().catch((error: Error) => log(`old attachments can’t be removed: ${error.message}`));
    };
    tidy();
    const timer = setInterval(tidy, everyMs).unref();
    signal.addEventListener('abort', () => clearInterval(timer), { once: true });
  }

  #pathOf({ hash, mediaType }: Attachment): string {
    return join(this.#options.dir, `${hash}${extensionOf(mediaType)}`);
  }

  async #have(sessionId: string, attachment: Attachment, until: number, signal: AbortSignal): Promise<void> {
    const { dir, now = Date.now } = this.#options;
    const path = this.#pathOf(attachment);
    const kept = await readFile(path).catch(() => null);
    if (kept !== null && hashOf(kept) === attachment.hash) {
      const time = new Date(now());
      await utimes(path, time, time).catch(() => undefined);
      return;
    }
    const bytes = await this.#fetch(sessionId, attachment, until, signal);
    const begun = `${path}.${randomUUID()}.part`;
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await writeFile(begun, bytes, { mode: 0o600 });
      // on disk before it has its name: half a file is never found under it
      const file = await open(begun, 'r');
      await file.sync().finally(() => file.close());
      await rename(begun, path);
    } catch (error) {
      await rm(begun, { force: true });
      throw new Error(`${named(attachment)} can’t be kept: ${(error as Error).message}`);
    }
  }

  /** @param signal fires when nobody waits any more, also when the runner is stopped */
  async #fetch(sessionId: string, attachment: Attachment, until: number, signal: AbortSignal): Promise<Uint8Array> {
    const {
      signal: stopping,
      log,
      now = Date.now,
      waitMs = (failures: number, cause: string) => retryMs(cause, failures, Math.random()),
    } = this.#options;
    const told = new Set<string>();
    for (let failures = 1; ; failures += 1) {
      const got = await this.#attempt(sessionId, attachment, signal);
      if ('bytes' in got) return got.bytes;
      if (stopping.aborted) throw new StoppedError(`the runner was stopped before it had ${named(attachment)}`);
      const { reason, isFinal = false, cause = 'unavailable' } = got;
      const left = until - now();
      if (isFinal || signal.aborted) throw new Error(`${named(attachment)} can’t be had: ${reason}`);
      if (left <= 0) throw new Error(`the message expired before ${named(attachment)} could be had: ${reason}`);
      if (!told.has(reason)) log(`${named(attachment)} is waited for: ${reason}`);
      told.add(reason);
      await pause(Math.min(waitMs(failures, cause), left), undefined, { signal }).catch(() => undefined);
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
        const said = errorIn(await response.text());
        const isFinal = status < 500 && !PASSING.includes(status) && said !== null;
        const cause = status === 401 || status === 403 ? 'unauthorized' : 'unavailable';
        return { reason: said?.message ?? `the server answered ${status}`, isFinal, cause };
      }
      const bytes = await bytesUpTo(response, size);
      if (bytes === null || hashOf(bytes) !== hash)
        return { reason: 'its bytes are not those of its hash', isFinal: true };
      return { bytes };
    } catch (error) {
      return { reason: connectionMessage(error) };
    }
  }

  /** Removes what nothing will ask for, and the oldest of what is too much. */
  async #tidy(): Promise<void> {
    const { dir, inHand = async () => '', now = Date.now, maxBytes = MAX_BYTES } = this.#options;
    const names = await readdir(dir).catch(() => []);
    if (names.length === 0) return;
    const wanted = await inHand();
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

/** SHA-256 in lower-case hex, as attachments are named by. */
export function hashOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/**
 * The bytes of a file, read in this step: what is said behind its message must not overtake it.
 * @returns null if they are not there any more, or are not those that were attached
 */
export function readAttachment({ path, hash }: AttachmentFile): Buffer | null {
  try {
    const bytes = readFileSync(path);
    return hashOf(bytes) === hash ? bytes : null;
  } catch {
    return null;
  }
}

/** A longer text in a message would fill the context: it is named, and the agent reads what it needs of it. */
export const MAX_TEXT_BYTES = 64 * 1024;

/**
 * For an agent that has no other way to be given a file, or none that is large enough: it reads it from the disk.
 * @param lost what is on the disk no more: it is said that it is missing
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

/** To the agent, which can ask for it. */
export function missingFilesText(files: readonly Attachment[]): string {
  const lines = files.map((file) => `- ${describe(file)}`);
  return `Attached to this message, and lost before it could be given to you:\n${lines.join('\n')}`;
}

function describe({ name, mediaType, bytes }: Attachment): string {
  return `${JSON.stringify(name)} (${mediaType}, ${bytes} bytes)`;
}
