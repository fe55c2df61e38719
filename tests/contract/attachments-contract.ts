import type { TranscriptPage } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bytesOf, hashOf, PNG } from '../support/attachments';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

const MIB = 1024 * 1024;

/** Images and files on messages, stored by content hash and readable only through a session that uses them. */
export function describeAttachmentsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`attachments, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let session = '';

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        session = await anew();
        await run();
      });
    const anew = async () => {
      serial += 1;
      const id = `attachments-${serial}`;
      const event = { type: 'CUSTOM', name: 'session:started', value: {} };
      await ingest(target, [record(1, { agentId: id, sessionId: id, event })], 1, id);
      return id;
    };

    const authorization = () => `Bearer ${target.token}`;
    const attach = (body: Uint8Array<ArrayBuffer>, type: string | null, called = 'a.png', to = session) =>
      target.send(`/api/v1/sessions/${to}/attachments?name=${encodeURIComponent(called)}`, {
        method: 'POST',
        headers: { authorization: authorization(), ...(type === null ? {} : { 'content-type': type }) },
        body,
      });
    const attached = async (...given: Parameters<typeof attach>) => {
      const response = await attach(...given);
      return [response.status, await response.json()];
    };
    const send = (body: object, to = session) =>
      target.send(`/api/v1/sessions/${to}/messages`, {
        method: 'POST',
        headers: { authorization: authorization(), 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
    const bytesAt = (hash: string, of = session) => target.get(`/api/v1/attachments/${hash}?session=${of}`);
    const refusal = async (response: Response) => {
      const { code, message } = await errorOf(response);
      return [response.status, code, message];
    };
    const hash = hashOf(PNG);
    const image = { hash, name: 'a.png', mediaType: 'image/png', bytes: PNG.byteLength };

    test('stores equal bytes once', async () => {
      expect(await attached(PNG, 'image/png')).toEqual([201, image]);
      expect(await attached(PNG, 'image/png', 'other.png')).toEqual([201, image]);
      const notes = bytesOf('# Grüße');
      expect(await attached(notes, 'text/markdown; charset=utf-8', 'Grüße/ü.md')).toEqual([
        201,
        { hash: hashOf(notes), name: 'Grüße/ü.md', mediaType: 'text/markdown', bytes: notes.byteLength },
      ]);
    });

    test('derives the type from the first bytes, ignoring the declared one', async () => {
      for (const type of ['text/plain', 'application/octet-stream', 'image/gif', null]) {
        expect(await attached(PNG, type)).toEqual([201, image]);
      }
      const pdf = bytesOf('%PDF-1.7\n');
      expect((await attached(pdf, 'application/x-unknown'))[1]).toMatchObject({ mediaType: 'application/pdf' });
      for (const [body, type, why] of [
        [bytesOf('<svg/>'), 'image/svg+xml', 'image/svg+xml is not supported'],
        [bytesOf('<svg/>'), 'image/png', 'The Content-Type is image/png, but the bytes are not'],
        [bytesOf('a\0b'), 'text/plain', 'The file is not text in UTF-8'],
        [Uint8Array.from([0xff, 0xfe, 0x41]), 'text/plain', 'The file is not text in UTF-8'],
        [bytesOf('x'), null, 'The Content-Type is missing'],
      ] as const) {
        const types = 'image/png, image/jpeg, image/gif, image/webp, text/*, application/json, application/pdf';
        expect(await refusal(await attach(body, type))).toEqual([
          400,
          'invalid_argument',
          `${why}. Attach one of ${types}.`,
        ]);
      }
    });

    test('refuses a file over 5 MiB, an empty one, one without a name and one for an unknown session', async () => {
      expect((await attach(new Uint8Array(5 * MIB).fill(65), 'text/plain')).status).toBe(201);
      const large = await attach(new Uint8Array(5 * MIB + 1).fill(65), 'text/plain');
      expect((await refusal(large)).slice(0, 2)).toEqual([413, 'too_large']);
      expect((await refusal(await attach(new Uint8Array(), 'text/plain'))).slice(0, 2)).toEqual([
        400,
        'invalid_argument',
      ]);
      expect((await refusal(await attach(PNG, 'image/png', ' '))).slice(0, 2)).toEqual([400, 'invalid_argument']);
      expect((await refusal(await attach(PNG, 'image/png', 'a', 'nobody'))).slice(0, 2)).toEqual([404, 'not_found']);
    });

    test('returns the stored bytes with a safe content type, only through a session that has them', async () => {
      const other = await anew();
      const large = new Uint8Array(3 * MIB).map((_, index) => 32 + ((index * 7) % 90));
      const html = bytesOf('<script>alert(1)</script>');
      for (const [body, type, called, shown, disposition] of [
        [PNG, 'image/png', 'a "b".png', 'image/png', 'inline; filename="a__b_.png"'],
        [html, 'text/html', 'x.html', 'text/plain; charset=utf-8', 'attachment; filename="x.html"'],
        [bytesOf('{}'), 'application/json', 'x.json', 'text/plain; charset=utf-8', 'attachment; filename="x.json"'],
        [bytesOf('%PDF-'), 'application/pdf', 'ü.pdf', 'application/pdf', 'attachment; filename="_.pdf"'],
        [large, 'text/plain', 'large', 'text/plain; charset=utf-8', 'attachment; filename="large"'],
      ] as const) {
        expect((await attach(body, type, called)).status).toBe(201);
        const response = await bytesAt(hashOf(body));
        expect([response.status, response.headers.get('content-type')]).toEqual([200, shown]);
        expect(response.headers.get('content-disposition')).toMatch(disposition);
        expect(hashOf(new Uint8Array(await response.arrayBuffer()))).toBe(hashOf(body));
        expect((await bytesAt(hashOf(body), other)).status).toBe(404);
      }
      const long = await target.get(`/api/v1/attachments/${hash}?session=${session}&name=${'x'.repeat(9_000)}`);
      expect(long.headers.get('content-disposition')?.length).toBeLessThan(1_000);
      const turned = encodeURIComponent('an\u202egnp.exe');
      const saved = await target.get(`/api/v1/attachments/${hash}?session=${session}&name=${turned}`);
      expect(saved.headers.get('content-disposition')).toBe(
        `inline; filename="an_gnp.exe"; filename*=UTF-8''an_gnp.exe`,
      );
      expect((await bytesAt('0'.repeat(64))).status).toBe(404);
      expect((await bytesAt('x')).status).toBe(404);
      expect((await target.get(`/api/v1/attachments/${hash}`)).status).toBe(400);
      const path = `/api/v1/attachments/${hash}?session=${session}`;
      const again = await target.get(path, { 'if-none-match': `"${hash}"` });
      expect([again.status, await again.text()]).toEqual([304, '']);
      expect((await target.send(path)).status).toBe(401);
    });

    test('lists attachments on their message in the transcript and in the command', async () => {
      await attach(PNG, 'image/png');
      const attachments = [
        { hash, name: 'shot.png' },
        { hash, name: 'the same.png' },
      ];
      const response = await send({ text: 'Look', clientId: 'c1', attachments });
      const { messageId } = (await response.json()) as { messageId: string };
      expect(response.status).toBe(202);
      const named = attachments.map((one) => ({ ...image, ...one }));
      const page = (await (await target.get(`/api/v1/sessions/${session}/transcript`)).json()) as TranscriptPage;
      expect(page.turns.flatMap(({ items }) => items)).toMatchObject([
        { id: messageId, text: 'Look', attachments: named },
      ]);
      const commands = await target.get(`/api/v1/agents/${session}/commands?runner=r&startedAt=1`);
      const reader = commands.body?.getReader();
      let commandText = '';
      while (!commandText.includes('up-to-date'))
        commandText += new TextDecoder().decode((await reader?.read())?.value);
      await reader?.cancel();
      const data = commandText.split('\n').find((line) => line.includes(messageId)) ?? '';
      expect(JSON.parse(data.replace('data:', '')).body.attachments).toEqual(named);
    });

    test('compares attachments when a clientId is repeated', async () => {
      await attach(PNG, 'image/png');
      const one = { text: 'Look', clientId: 'c1', attachments: [{ hash, name: 'a.png' }] };
      const first = await (await send(one)).json();
      expect(await (await send(one)).json()).toEqual(first);
      for (const attachments of [[], [{ hash, name: 'b.png' }], [...one.attachments, ...one.attachments]]) {
        const response = await send({ ...one, attachments });
        expect([response.status, (await errorOf(response)).reason]).toEqual([409, 'client_id_reused']);
      }
      const none = { text: 'Hi', clientId: 'c2' };
      const without = await (await send(none)).json();
      expect(await (await send({ ...none, attachments: [] })).json()).toEqual(without);
    });

    test('refuses a message with an attachment of another session, more than 8, or more than 10 MiB', async () => {
      const other = await anew();
      await attach(PNG, 'image/png', 'a', other);
      const missing = await send({ text: 'x', clientId: 'c1', attachments: [{ hash, name: 'a' }] });
      expect((await refusal(missing)).slice(0, 2)).toEqual([400, 'invalid_argument']);
      await attach(PNG, 'image/png');
      const nine = await send({ text: 'x', clientId: 'c1', attachments: Array(9).fill({ hash, name: 'a' }) });
      expect((await refusal(nine)).slice(0, 2)).toEqual([400, 'invalid_argument']);
      const large = [66, 67, 68].map((byte) => new Uint8Array(4 * MIB).fill(byte));
      for (const body of large) await attach(body, 'text/plain');
      const attachments = large.map((body) => ({ hash: hashOf(body), name: 'a' }));
      const heavy = await send({ text: 'x', clientId: 'c1', attachments });
      expect((await refusal(heavy)).slice(0, 2)).toEqual([400, 'invalid_argument']);
      expect((await send({ text: 'x', clientId: 'c1', attachments: attachments.slice(1) })).status).toBe(202);
    });
  });
}
