import {
  ATTACHMENT_KEPT_MS,
  MAX_ATTACHMENT_BYTES,
  MAX_UNNAMED_ATTACHMENT_BYTES,
  MAX_UNNAMED_ATTACHMENTS,
} from '@interlude/protocol/limits';
import type { Scope } from '@interlude/protocol/scope';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { detectMediaType, postAttachment } from '@/lib/server/commands/attachments';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { postMessage } from '@/lib/server/commands/session-commands';
import { getAttachment } from '@/lib/server/queries/read-attachment';
import { ownerContext } from '@/tests/support/call-route';
import { bytesOf, hashOf, PNG } from '../../support/attachments';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

const T0 = 1_795_170_000_000;
let now = T0;
let steady = 0;
let target: InProcessTarget;
let hub: CommandHub;
beforeEach(async () => {
  now = T0;
  steady = 0;
  target = await inProcessTarget(
    () => now,
    () => steady,
  );
  hub = new CommandHub({ database: target.database, now: () => now, steady: () => steady });
  await ingest(target, [record(1, { event: { type: 'CUSTOM', name: 'session:started', value: {} } })]);
});
afterEach(() => target.close());

const attach = (body: Uint8Array<ArrayBuffer>, type = 'text/plain') =>
  postAttachment(
    {
      ids: { sessionId: 's1' },
      query: { name: 'a' },
      request: new Request('http://localhost', { method: 'POST', body, headers: { 'content-type': type } }),
      ...ownerContext,
    },
    target.context,
  );
const send = (clientId: string, body: Uint8Array) =>
  postMessage(
    {
      ids: { sessionId: 's1' },
      body: { text: 'Hi', clientId, attachments: [{ hash: hashOf(body), name: 'a' }] },
      request: new Request('http://localhost'),
      ...ownerContext,
    },
    { ...target.context, commands: hub },
  );
const passes = (ms: number) => {
  now += ms;
  steady += ms;
};
/** Attachments with stored bytes. */
const kept = async () => {
  const { rows } = await target.database.reader.execute('SELECT DISTINCT hash FROM attachment_parts');
  return rows.map(({ hash }) => hash);
};

describe('an attachment', () => {
  const [named, unnamed, late] = ['named', 'unnamed', 'late'].map(bytesOf) as [
    Uint8Array<ArrayBuffer>,
    Uint8Array<ArrayBuffer>,
    Uint8Array<ArrayBuffer>,
  ];

  it('is removed after a day unless a message names it', async () => {
    for (const one of [named, unnamed, late]) await attach(one);
    await send('c1', named);
    await hub.sweep();
    passes(ATTACHMENT_KEPT_MS - 1);
    await hub.sweep();
    expect(await kept()).toHaveLength(3);
    await attach(late);
    passes(1);
    await hub.sweep();
    expect((await kept()).sort()).toEqual([hashOf(named), hashOf(late)].sort());
    await expect(send('c2', unnamed)).rejects.toMatchObject({ code: 'invalid_argument' });
    await send('c3', late);
    passes(10 * ATTACHMENT_KEPT_MS);
    await hub.sweep();
    expect(await kept()).toHaveLength(2);
  });

  it('is refused while the session holds 200 unused uploads', async () => {
    const many = Array.from({ length: MAX_UNNAMED_ATTACHMENTS }, (_, index) => bytesOf(`number ${index}`));
    for (const one of many) await attach(one);
    await expect(attach(late)).rejects.toMatchObject({ code: 'conflict', details: { reason: 'too_many_attachments' } });
    expect(await attach(many[3] as typeof late)).toMatchObject({ hash: hashOf(many[3] as typeof late) });
    await send('c1', many[0] as typeof late);
    expect(await attach(late)).toMatchObject({ hash: hashOf(late) });
  });

  it('is refused when unused uploads would exceed 100 MiB', async () => {
    const most = MAX_UNNAMED_ATTACHMENT_BYTES / MAX_ATTACHMENT_BYTES;
    for (let index = 0; index < most; index += 1) await attach(new Uint8Array(MAX_ATTACHMENT_BYTES).fill(65 + index));
    await expect(attach(late)).rejects.toMatchObject({ code: 'conflict', details: { reason: 'too_many_attachments' } });
    await expect(send('c1', late)).rejects.toMatchObject({ code: 'invalid_argument' });
  });

  it('is refused over 5 MiB', async () => {
    await attach(new Uint8Array(MAX_ATTACHMENT_BYTES).fill(65));
    const larger = attach(new Uint8Array(MAX_ATTACHMENT_BYTES + 1).fill(65));
    await expect(larger).rejects.toMatchObject({ code: 'too_large' });
  });

  it('is refused with its message when the message carries more than 10 MiB', async () => {
    const large = [65, 66, 67].map((byte) => new Uint8Array(MAX_ATTACHMENT_BYTES).fill(byte));
    for (const one of large) await attach(one);
    const sent = (count: number) =>
      postMessage(
        {
          ids: { sessionId: 's1' },
          body: {
            ...{ text: 'Hi', clientId: `c${count}` },
            attachments: large.slice(0, count).map((one) => ({ hash: hashOf(one), name: 'a' })),
          },
          request: new Request('http://localhost'),
          ...ownerContext,
        },
        { ...target.context, commands: hub },
      );
    await expect(sent(3)).rejects.toMatchObject({ code: 'invalid_argument' });
    expect(await sent(2)).toMatchObject({ delivery: 'queued' });
  });

  it('is served only from a session in the scope', async () => {
    const { hash } = await attach(named);
    const served = (scope: Scope) =>
      getAttachment(
        {
          ids: { hash },
          query: { session: 's1', name: null },
          request: new Request('http://localhost'),
          ...ownerContext,
          principal: { ...ownerContext.principal, scope },
        },
        target.context,
      );
    expect((await served({ kind: 'agents', ids: ['a1'], prefixes: [] })).status).toBe(200);
    await expect(served({ kind: 'agents', ids: ['a2'], prefixes: [] })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('stays when the clock is set ahead', async () => {
    await attach(unnamed);
    await hub.sweep();
    now += 30 * ATTACHMENT_KEPT_MS;
    await hub.sweep();
    expect(await kept()).toHaveLength(1);
  });

  it('stays unused when its message is refused', async () => {
    await attach(unnamed);
    const attachments = [unnamed, late].map((one) => ({ hash: hashOf(one), name: 'a' }));
    const sent = postMessage(
      {
        ids: { sessionId: 's1' },
        body: { text: 'Hi', clientId: 'c1', attachments },
        request: new Request('http://localhost'),
        ...ownerContext,
      },
      { ...target.context, commands: hub },
    );
    await expect(sent).rejects.toMatchObject({ code: 'invalid_argument' });
    const { rows } = await target.database.reader.execute('SELECT is_named FROM attachments');
    expect(rows.map((row) => row.is_named)).toEqual([0]);
  });
});

describe('detectMediaType', () => {
  const jpeg = Uint8Array.from([0xff, 0xd8, 0xff, 0xe0]);
  const webp = bytesOf('RIFF1234WEBPVP8 ');
  it.each([
    ['image/png', PNG, 'image/jpeg'],
    ['image/jpeg', jpeg, null],
    ['image/webp', webp, 'text/plain'],
    ['image/gif', bytesOf('GIF89a'), 'application/pdf'],
    ['text/x-c++src', bytesOf('int x;'), 'TEXT/X-C++SRC; charset=latin1'],
    ['text/plain', bytesOf('\ufeffä'), 'text/plain'],
    ['application/json', bytesOf('no JSON, but text'), 'application/json'],
  ] as const)('is %s', (type, bytes, claimed) => {
    expect(detectMediaType(claimed, bytes)).toBe(type);
  });

  it.each([
    ['image/svg+xml', bytesOf('<svg/>')],
    ['image/webp', bytesOf('RIFF1234WAVE')],
    ['image/png', PNG.slice(0, 7)],
    ['application/zip', bytesOf('PK')],
    ['constructor', bytesOf('x')],
    ['text/', bytesOf('x')],
    ['text/plain', jpeg.slice(0, 2)],
  ])('is refused: %s', (claimed, bytes) => {
    expect(() => detectMediaType(claimed, bytes)).toThrow(/Attach one of/);
  });
});
