// @vitest-environment happy-dom
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { isStored, sendMessage } from '@/components/composer/outgoing-queue';
import { uploadAttachment } from '@/components/composer/upload-attachment';
import { HeldRequest } from './held-request';

/** A browser's file. @param isThere false if its bytes can't be read */
class FileOnDisk extends File {
  isThere = true;
  override slice(from?: number, to?: number, type?: string): Blob {
    const part = super.slice(from, to, type);
    const read = part.arrayBuffer.bind(part);
    part.arrayBuffer = () => (this.isThere ? read() : Promise.reject(new DOMException('gone', 'NotReadableError')));
    return part;
  }
}

beforeEach(() => HeldRequest.hold());
afterEach(() => vi.unstubAllGlobals());

describe('an upload', () => {
  const upload = (file: File) => uploadAttachment('s', file, () => {}, new AbortController().signal);

  it('fails without a retry when the file can’t be read', async () => {
    const folder = new FileOnDisk([new Uint8Array(4096)], 'src');
    folder.isThere = false;
    const outcome = await upload(folder);
    expect(outcome).toMatchObject({ kind: 'failed', canRetry: false, reason: expect.stringMatching(/folder/) });
    expect(HeldRequest.all).toEqual([]);
  });

  it('fails without a retry when the file changes meanwhile', async () => {
    const file = new FileOnDisk(['x'], 'build.log');
    const outcome = upload(file);
    const request = await HeldRequest.at(0);
    file.isThere = false;
    request.fail();
    expect(await outcome).toMatchObject({ canRetry: false, reason: expect.stringMatching(/choose it again/) });
  });

  it('fails with a retry when the server is unreachable', async () => {
    const outcome = upload(new FileOnDisk(['x'], 'a.txt'));
    (await HeldRequest.at(0)).fail();
    expect(await outcome).toEqual({ kind: 'failed', canRetry: true, reason: 'The server can’t be reached.' });
  });

  it('sends nothing when it is removed before the first byte', async () => {
    const call = new AbortController();
    const outcome = uploadAttachment('s', new FileOnDisk(['x'], 'a.txt'), () => {}, call.signal);
    call.abort();
    await outcome;
    expect(HeldRequest.all).toEqual([]);
  });
});

describe('an attachment that the server removed', () => {
  const attachment = (name: string) => ({ hash: name.repeat(64), name, mediaType: 'image/png', bytes: 3 });
  let asked: [path: string, ifNoneMatch: string | null][];
  function answer(statusOf: (path: string) => number) {
    asked = [];
    vi.stubGlobal('fetch', async (path: string, init: RequestInit) => {
      asked.push([path, new Headers(init.headers).get('if-none-match')]);
      const status = statusOf(path);
      const refusal = JSON.stringify({ error: { code: 'invalid_argument', message: 'POST its bytes first' } });
      return new Response(status === 304 ? null : refusal, { status });
    });
  }

  it('is distinguished from a stored and an unknown one without a download', async () => {
    const found: (boolean | null)[] = [];
    for (const status of [304, 200, 404, 401, 503]) {
      answer(() => status);
      found.push(await isStored('s/1', attachment('a')));
    }
    expect(found).toEqual([true, true, false, null, null]);
    expect(asked).toEqual([[`/api/v1/attachments/${'a'.repeat(64)}?session=s%2F1`, `"${'a'.repeat(64)}"`]]);
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('away')));
    expect(await isStored('s', attachment('a'))).toBeNull();
  });

  it('is named in the reason of the refused message', async () => {
    const message = {
      ...{ clientId: 'c1', text: 'Look', replyTo: null, attachments: [attachment('a'), attachment('b')], at: 1 },
      ...{ state: 'sending' as const, messageId: null, reason: null },
    };
    answer((path) => (path.includes('/messages') ? 400 : path.includes('bbb') ? 404 : 304));
    expect(await sendMessage('s', message)).toEqual({
      kind: 'refused',
      reason: 'The server no longer has b. Edit the message and attach the files again.',
    });
    // Other errors show the server's message.
    answer((path) => (path.includes('/messages') ? 400 : 304));
    expect(await sendMessage('s', message)).toEqual({ kind: 'refused', reason: 'POST its bytes first' });
    answer((path) => (path.includes('/messages') ? 403 : 404));
    expect(await sendMessage('s', message)).toEqual({ kind: 'refused', reason: 'POST its bytes first' });
  });
});
