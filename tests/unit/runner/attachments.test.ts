import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Attachment } from '@interlude/protocol/field-schemas';
import { AttachmentStore, type AttachmentStoreOptions, StoppedError } from '@interlude/runner/host/attachment-store';
import { MessageDelivery } from '@interlude/runner/host/message-delivery';
import { readAttachment } from '@interlude/runner/host/read-attachment';
import type { CommandOf, SessionFacts } from '@interlude/runner/host/source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bytesOf, hashOf, PNG } from '../../support/attachments';
import { tempDir } from '../../support/temp-dir';

const DAY_MS = 24 * 60 * 60_000;
const image: Attachment = { hash: hashOf(PNG), name: 'a.png', mediaType: 'image/png', bytes: PNG.byteLength };

/** A store with a scripted server. */
async function stored(answer: RequestListener, more: Partial<AttachmentStoreOptions> = {}) {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const dir = join(await tempDir(), 'attachments');
  const stop = new AbortController();
  const said: string[] = [];
  const open = () =>
    new AttachmentStore({
      endpoint: async () => ({ url, token: 'secret' }),
      dir,
      signal: stop.signal,
      log: (message) => said.push(message),
      waitMs: () => 5,
      ...more,
    });
  onTestFinished(() => stop.abort());
  return { store: open(), open, asked, dir, said, stop, server };
}

describe('the bytes of an attachment', () => {
  test('are fetched once, stored by hash for the owner only, and found by the next process', async () => {
    const { store, open, asked, dir } = await stored((request, response) => {
      expect(request.headers.authorization).toBe('Bearer secret');
      response.end(PNG);
    });
    const [file] = await store.files('a/b', [image]);
    expect(file).toEqual({ ...image, path: join(dir, `${image.hash}.png`) });
    expect(new Uint8Array(await readFile(file?.path ?? ''))).toEqual(PNG);
    expect((await stat(file?.path ?? '')).mode & 0o777).toBe(0o600);
    expect(asked).toEqual([`/api/v1/attachments/${image.hash}?session=a%2Fb`]);
    await store.files('a/b', [image, { ...image, name: 'again.png' }]);
    await open().files('a/b', [image]);
    expect(asked).toHaveLength(1);
    expect(await readdir(dir)).toEqual([`${image.hash}.png`]);
  });

  test('are refused when hash or size differ', async () => {
    for (const other of [bytesOf('other'), new Uint8Array(10 * 1024 * 1024)]) {
      const { store, dir } = await stored((_, response) => void response.end(other));
      await expect(store.files('s', [image])).rejects.toThrow(
        'the attachment "a.png" is unavailable: its bytes do not match its hash',
      );
      expect(await readdir(dir).catch(() => [])).toEqual([]);
    }
  });

  test('are fetched again when damaged on disk', async () => {
    const { store, asked, dir } = await stored((_, response) => void response.end(PNG));
    await mkdir(dir, { recursive: true });
    await writeFile(join(dir, `${image.hash}.png`), 'damaged');
    const [file] = await store.files('s', [image]);
    expect(hashOf(await readFile(file?.path ?? ''))).toBe(image.hash);
    expect(asked).toHaveLength(1);
  });

  test('are retried while the server is unavailable, and refused when they don’t exist', async () => {
    let times = 0;
    const { store, said } = await stored((request, response) => {
      times += 1;
      if (times === 1) request.socket.destroy();
      else if (times === 2) response.writeHead(503).end();
      else if (times === 3) {
        response.writeHead(200, { 'content-length': '70' }).write(PNG.slice(0, 10));
        setImmediate(() => request.socket.destroy());
      } else response.end(PNG);
    });
    expect(await store.files('s', [image])).toHaveLength(1);
    expect(times).toBe(4);
    expect(said[0]).toContain('the attachment "a.png" is not available yet: ');
    const { store: without } = await stored((_, response) => {
      response.writeHead(404).end('{"error":{"code":"not_found","message":"It is gone."}}');
    });
    await expect(without.files('s', [image])).rejects.toThrow('the attachment "a.png" is unavailable: It is gone.');
  });

  test('are retried while the token is refused or a proxy answers, with one log line per cause', async () => {
    const causes: string[] = [];
    let times = 0;
    const { store, said } = await stored(
      (_, response) => {
        times += 1;
        if (times <= 3) response.writeHead(401).end('{"error":{"code":"unauthorized","message":"The token is old."}}');
        else if (times <= 6) response.writeHead(404).end('<html>no such page</html>');
        else response.end(PNG);
      },
      { waitMs: (_, cause) => causes.push(cause) && 5 },
    );
    expect(await store.files('s', [image])).toHaveLength(1);
    expect(said).toEqual([
      'the attachment "a.png" is not available yet: The token is old.',
      'the attachment "a.png" is not available yet: the server answered 404',
    ]);
    expect(causes).toEqual([...Array(3).fill('unauthorized'), ...Array(3).fill('unavailable')]);
  });

  test('are retried until their message expires', async () => {
    let now = 0;
    const refuse: RequestListener = (_, response) => {
      if (asked.length === 2) now = 50;
      response.writeHead(403).end('<html></html>');
    };
    const { store, asked } = await stored(refuse, { waitMs: () => 3_600_000, now: () => now });
    await expect(store.files('s', [image], 50)).rejects.toThrow(
      'the message expired before the attachment "a.png" was available: the server answered 403',
    );
    expect(asked).toHaveLength(2);
  });

  test('are left undecided when the runner stops', async () => {
    const { store, stop, said } = await stored((_, response) => void response.writeHead(503).end());
    const files = store.files('s', [image]);
    files.catch(() => undefined);
    await expect.poll(() => said).toHaveLength(1);
    stop.abort();
    await expect(files).rejects.toThrow(StoppedError);
  });

  test('are found or fetched again for a message of an earlier process', async () => {
    const { open, asked, dir } = await stored((_, response) => void response.end(PNG));
    const before = { ...image, path: `/another/folder/${image.hash}.png` };
    const there = { ...image, path: join(dir, `${image.hash}.png`) };
    expect(await open().restore('s', [before])).toEqual([there]);
    expect(asked).toHaveLength(1);
    expect(await open().restore('s', [before])).toEqual([there]);
    expect(asked).toHaveLength(1);
    expect(hashOf(readAttachment(there) ?? bytesOf(''))).toBe(image.hash);
  });

  test('count as lost when neither disk nor server has them', async () => {
    const gone = '{"error":{"code":"not_found","message":"It is gone."}}';
    const { store, said, dir } = await stored((_, response) => void response.writeHead(404).end(gone));
    const [file] = await store.restore('s', [{ ...image, path: '/another/folder/x.png' }]);
    expect(file?.path).toBe(join(dir, `${image.hash}.png`));
    expect(said).toEqual(['the attachment "a.png" is unavailable: It is gone.']);
    expect(file && readAttachment(file)).toBeNull();
  });

  test('are removed after two unused weeks unless a message in flight needs them', async () => {
    const { store, dir } = await stored((_, response) => void response.end(PNG), {
      inFlight: async () => JSON.stringify([{ messageId: 'm1', files: [image] }]),
    });
    await mkdir(dir, { recursive: true });
    const old = async (name: string) => {
      const then = new Date(Date.now() - 15 * DAY_MS);
      await writeFile(join(dir, name), 'x');
      await utimes(join(dir, name), then, then);
    };
    await old('old.txt');
    await old(`${image.hash}.png`);
    store.startCleanup(20);
    await expect.poll(() => readdir(dir)).toEqual([`${image.hash}.png`]);
    expect((await stat(join(dir, `${image.hash}.png`))).mtimeMs).toBeGreaterThan(Date.now() - 60_000);
    await old('older.txt');
    await expect.poll(() => readdir(dir)).toEqual([`${image.hash}.png`]);
  });

  test('are removed oldest first above the size limit, except recent ones', async () => {
    const { store, dir } = await stored((_, response) => void response.end(PNG), { maxBytes: 25 });
    await mkdir(dir, { recursive: true });
    for (const [name, days] of Object.entries({ now: 0, yesterday: 1, three: 3, four: 4 })) {
      await writeFile(join(dir, name), 'ten bytes.');
      const then = new Date(Date.now() - days * DAY_MS);
      await utimes(join(dir, name), then, then);
    }
    store.startCleanup();
    await expect.poll(async () => (await readdir(dir)).toSorted()).toEqual(['now', 'yesterday']);
  });
});

describe('a message with attachments', () => {
  const message = (id: string, attachments?: Attachment[], sessionId = 's'): CommandOf<'message'> => ({
    ...{ id, type: 'message', sessionId, createdAt: 1, expiresAt: 2 },
    body: {
      messageId: id,
      text: id,
      from: { kind: 'person', id: 'operator' },
      ...(attachments ? { attachments } : {}),
    },
  });
  const facts =
    (attachments: SessionFacts['attachments'] = null) =>
    () => ({ sessionId: 's', attachments });
  const both = facts(['image', 'file']);

  test('is delivered before later messages of its session, without delaying other sessions', async () => {
    const waiting: (() => void)[] = [];
    const carried = new MessageDelivery({
      files: (_, attachments) =>
        new Promise((resolve) => waiting.push(() => resolve(attachments.map((one) => ({ ...one, path: '/x' }))))),
    });
    const said: string[] = [];
    const pass = (command: CommandOf<'message'>) =>
      carried.pass(command, both, async (files) => {
        said.push(`${command.id} ${files.length}`);
        return { state: 'delivered' };
      });
    const all = [pass(message('m1', [image])), pass(message('m2')), pass(message('m3', [image]))];
    await pass(message('other', undefined, 't'));
    expect(said).toEqual(['other 0']);
    await expect.poll(() => waiting).toHaveLength(1);
    waiting[0]?.();
    await expect.poll(() => waiting).toHaveLength(2);
    waiting[1]?.();
    expect(await Promise.all(all)).toEqual(Array(3).fill({ state: 'delivered' }));
    expect(said).toEqual(['other 0', 'm1 1', 'm2 0', 'm3 1']);
    await pass(message('m4'));
    expect(said.at(-1)).toBe('m4 0');
  });

  test('does not wait for the outcome of the previous one', async () => {
    const carried = new MessageDelivery({ files: async () => [] });
    const never = new Promise<never>(() => {});
    void carried.pass(message('m1', [image]), both, () => never);
    expect(await carried.pass(message('m2', [image]), both, async () => ({ state: 'delivered' }))).toEqual({
      state: 'delivered',
    });
  });

  test('is refused with a reason when unsupported, unavailable or without a hash', async () => {
    const carried = new MessageDelivery({ files: () => Promise.reject(new Error('it is gone')) });
    const pass = (attachments: unknown, known: () => SessionFacts) =>
      carried.pass(message('m1', attachments as Attachment[]), known, async () => ({ state: 'delivered' }));
    const refused = (reason: string) => ({ state: 'failed', reason });
    expect(await pass([image], facts(['file']))).toEqual(
      refused('this agent does not support images; send the message without them'),
    );
    const file = { ...image, mediaType: 'text/plain' };
    expect(await pass([file], facts([]))).toEqual(
      refused('this agent does not support files; send the message without them'),
    );
    expect(await pass([image], both)).toEqual(refused('it is gone'));
    for (const misfit of [{ ...image, hash: '../../x' }, { ...image, bytes: 6 * 1024 * 1024 }, null]) {
      expect(await pass([misfit], both)).toEqual(refused('the message has an invalid attachment; attach it again'));
    }
  });

  test('waits until its agent reports what it supports', async () => {
    let known: SessionFacts = { sessionId: 's', attachments: null };
    const carried = new MessageDelivery({ files: async () => [{ ...image, path: '/x' }] });
    const said: number[] = [];
    const pass = (id: string) =>
      carried.pass(
        message(id, [image]),
        () => known,
        async (files) => {
          said.push(files.length);
          return { state: 'delivered' };
        },
      );
    const first = pass('m1');
    carried.recheck();
    await new Promise(setImmediate);
    expect(said).toEqual([]);
    known = { sessionId: 's', attachments: ['image'] };
    carried.recheck();
    expect(await first).toEqual({ state: 'delivered' });
    expect(said).toEqual([1]);
    known = { sessionId: 's', attachments: null };
    const second = pass('m2');
    await new Promise(setImmediate);
    known = { sessionId: 's', attachments: ['file'] };
    carried.recheck();
    expect(await second).toEqual({
      state: 'failed',
      reason: 'this agent does not support images; send the message without them',
    });
    expect(said).toEqual([1]);
  });

  test('is refused for an unknown session after a while', async () => {
    const carried = new MessageDelivery({ files: async () => [{ ...image, path: '/x' }] }, 20);
    const say = async () => ({ state: 'delivered' }) as const;
    expect(await carried.pass(message('m1', [image]), () => undefined, say)).toEqual({
      state: 'failed',
      reason: 'this runner has no such session',
    });
  });

  test('stays open with later messages when the runner stops first', async () => {
    const asked: number[] = [];
    const carried = new MessageDelivery({
      files: (_, __, until = 0) => {
        asked.push(until);
        return Promise.reject(new StoppedError('stopped'));
      },
    });
    const settled: string[] = [];
    for (const [id, carries] of [
      ['m1', [image]],
      ['m2', undefined],
    ] as const) {
      const say = async () => ({ state: 'delivered' }) as const;
      void carried.pass(message(id, carries && [...carries]), both, say).then(() => settled.push(id));
    }
    await expect.poll(() => asked).toEqual([2]);
    await carried.pass(message('other', undefined, 't'), both, async () => ({ state: 'delivered' }));
    await new Promise(setImmediate);
    expect(settled).toEqual([]);
  });
});
