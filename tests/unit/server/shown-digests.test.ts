import { MAX_UNNAMED_ATTACHMENTS } from '@interlude/protocol/limits';
import type { RequestDetail } from '@interlude/protocol/read-models';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ROUTES } from '@/lib/server/routes';
import { AccessStage, bearer, type Headers } from '@/tests/support/access-stage';
import { bytesOf, hashOf, PNG } from '@/tests/support/attachments';
import { record } from '@/tests/support/ingest-target';

const CONSOLE = 'https://console.example';
const FILE = bytesOf('pin: 4711');
const FILE_HASH = hashOf(FILE);
const PNG_HASH = hashOf(PNG);

let stage: AccessStage;
/** May answer, unredacted. */
let admin: Headers;
/** May answer, redacted. */
let operator: Headers;
/** Unredacted, may not answer. */
let viewer: Headers;
/** Embeds, redacted and not; whatever their role, they may not answer. */
let embeds: Headers[];
/** The digest of the request as stored. */
let plain: string;

const run = [{ type: 'RUN_STARTED', threadId: 's1', runId: 'r1' }];
let seq = 0;

async function say(...events: object[]): Promise<void> {
  const records = events.map((event) => record(++seq, { event }));
  const body = { producer: { id: 'p1', epoch: 1 }, records };
  await stage.ask('/events', { method: 'POST', body });
}

function asks(id: string, command: string) {
  const value = { request_id: id, kind: 'permission', tool_name: 'Bash', title: 'Run it?', input: { command } };
  return { type: 'CUSTOM', name: 'request:opened', value };
}

const read = (as: Headers, id: string) => stage.ask<RequestDetail>(`/sessions/s1/requests/${id}`, { as });

beforeAll(async () => {
  stage = await AccessStage.start({ env: { INTERLUDE_REDACT_ROLES: 'operator', INTERLUDE_EMBED_ORIGINS: CONSOLE } });
  admin = await stage.token({ role: 'admin' });
  operator = await stage.token({ role: 'operator' });
  viewer = await stage.token({ role: 'viewer' });
  await say(...run, asks('q1', 'pin 4711'));
  plain = (await read(admin, 'q1')).request.digest ?? '';
  embeds = await Promise.all(
    [
      { sessionId: 's1', role: 'operator' },
      { sessionId: 's1', role: 'operator', redact: false },
      { fleet: true, redact: false },
    ].map(async (made) => {
      const body = { parentOrigin: CONSOLE, ...made };
      return bearer((await stage.ask<{ token: string }>('/embed-tokens', { method: 'POST', body })).token);
    }),
  );
  for (const [name, type, content] of [
    ['pin.txt', 'text/plain', FILE],
    ['dot.png', 'image/png', PNG],
  ] as const) {
    await stage.ask(`/sessions/s1/attachments?name=${name}`, {
      method: 'POST',
      body: content,
      headers: { 'content-type': type },
    });
  }
  const attachments = [
    { hash: FILE_HASH, name: 'pin.txt' },
    { hash: PNG_HASH, name: 'dot.png' },
  ];
  const body = { text: 'see', clientId: 'c1', attachments };
  await stage.ask('/sessions/s1/messages', { method: 'POST', as: admin, body });
});
afterAll(() => stage.close());

const IDS: Record<string, string> = { sessionId: 's1', agentId: 'a1', requestId: 'q1' };
const READS = ROUTES.filter(({ method, access }) => method === 'GET' && (access === 'read' || access === 'attend'))
  .map(({ pattern }) => pattern.replace('/api/v1', '').replace(/:(\w+)/g, (_, name) => IDS[name] ?? 'id'))
  .filter((path) => path !== '/stream');

/** Everything a reader sees of the session and the inbox: on every route, and on a replaying stream. */
async function everything(as: Headers): Promise<string> {
  const answers = await Promise.all(READS.map(async (path) => (await stage.send(`/api/v1${path}`, { as })).text()));
  const topics = as === embeds[2] ? 'topic=fleet' : 'topic=session:s1&topic=fleet';
  const reader = await stage.stream(`/stream?${topics}&after=0`, as);
  await reader.frame('up-to-date');
  return [...answers, JSON.stringify(reader.frames)].join('\n');
}

const digestsIn = (text: string) => [...text.matchAll(/"digest":("[^"]*")/g)].map(([, digest]) => digest);
const hashesIn = (text: string) => [...text.matchAll(/"hash":"([0-9a-f]{64})"/g)].map(([, hash]) => hash ?? '');

describe('a request digest', () => {
  test('is plain for unredacted readers who may answer', async () => {
    const digests = digestsIn(await everything(admin));
    // the request, its inbox item, and both on the stream
    expect(digests.length).toBeGreaterThan(3);
    expect(new Set(digests)).toEqual(new Set([JSON.stringify(plain)]));
  });

  test('is keyed for redacted readers who may answer, the same on every route and stream', async () => {
    const text = await everything(operator);
    const digests = digestsIn(text);
    expect(digests.length).toBeGreaterThan(3);
    expect(new Set(digests).size).toBe(1);
    expect(digests[0]).toMatch(/^"[0-9a-f]{64}"$/);
    expect(text).not.toContain(plain);
  });

  test('is withheld from readers who may not answer', async () => {
    for (const reader of [viewer, ...embeds]) {
      const text = await everything(reader);
      expect([digestsIn(text), text.includes(plain)]).toEqual([[], false]);
    }
  });

  test('is withheld from them on a live stream, beside readers who see it', async () => {
    const topics = '/stream?topic=session:s1&topic=fleet';
    const readers = await Promise.all([admin, operator, viewer].map((as) => stage.stream(topics, as)));
    for (const reader of readers) await reader.frame('up-to-date');
    await say(asks('q2', 'pin 4712'));
    const [all, keyed, none] = await Promise.all(
      readers.map(async (reader) => {
        const { data } = await reader.frame('inbox');
        return data as unknown as { request: { digest: string | null } };
      }),
    );
    const digest = (await read(admin, 'q2')).request.digest;
    expect(all?.request.digest).toBe(digest);
    expect(keyed?.request.digest).toBe((await read(operator, 'q2')).request.digest);
    expect(none?.request.digest).toBeNull();
    const seen = JSON.stringify([readers[1]?.frames, readers[2]?.frames]);
    expect(seen).not.toContain(digest);
  });

  test('identifies the request in its reader’s form only', async () => {
    await say(asks('q3', 'ls'), asks('q4', 'ls -l'));
    const answer = async (as: Headers, id: string, digest: string | null) => {
      const body = { behavior: 'allow', digest };
      const response = await stage.send(`/api/v1/sessions/s1/requests/${id}`, { method: 'POST', as, body });
      const { error } = (await response.json()) as { error?: { reason: string; digest: string } };
      return [response.status, error?.reason ?? null, error?.digest ?? null];
    };
    const [plainOf3, keyedOf3] = [
      (await read(admin, 'q3')).request.digest,
      (await read(operator, 'q3')).request.digest,
    ];
    const keyedOf4 = (await read(operator, 'q4')).request.digest;
    expect(await answer(operator, 'q3', plainOf3)).toEqual([409, 'request_changed', keyedOf3]);
    expect(await answer(operator, 'q3', keyedOf4)).toEqual([409, 'request_changed', keyedOf3]);
    expect(await answer(admin, 'q3', keyedOf3)).toEqual([409, 'request_changed', plainOf3]);
    expect(await answer(operator, 'q3', keyedOf3)).toEqual([202, null, null]);
    expect(await answer(admin, 'q4', (await read(admin, 'q4')).request.digest)).toEqual([202, null, null]);
    // the runner checks the plain digest for every answer
    const { rows } = await stage.parts.database.reader.execute(
      "SELECT body FROM commands WHERE type LIKE 'permission%'",
    );
    expect(rows.map(({ body }) => JSON.parse(String(body)).digest)).toContain(plainOf3);
  });

  test('is not needed to render a page: a repeated request counts as new', async () => {
    await say(asks('q5', 'one'));
    await say(asks('q5', 'two'));
    const { turns } = await stage.ask<{ turns: { items: { id: string; input?: unknown }[] }[] }>(
      '/sessions/s1/transcript',
      { as: viewer },
    );
    const asked = turns.flatMap(({ items }) => items).filter(({ id }) => id.startsWith('q5'));
    expect(asked.map(({ input }) => input)).toEqual([{ command: 'one' }, { command: 'two' }]);
  });
});

describe('an attachment hash', () => {
  let keyed: string[];
  beforeEach(async () => {
    keyed = [...new Set(hashesIn(await everything(operator)))];
  });

  test('is keyed for redacted readers on every route and stream', async () => {
    expect(new Set(hashesIn(await everything(admin)))).toEqual(new Set([FILE_HASH, PNG_HASH]));
    expect(keyed).toHaveLength(2);
    for (const reader of [operator, embeds[0] as Headers]) {
      const text = await everything(reader);
      expect([text.includes(FILE_HASH), text.includes(PNG_HASH), hashesIn(text).length > 0]).toEqual([
        false,
        false,
        true,
      ]);
    }
  });

  test('opens the attachment in its reader’s form only', async () => {
    const get = async (as: Headers, hash: string) => {
      const response = await stage.send(`/api/v1/attachments/${hash}?session=s1`, { as });
      return [response.status, response.headers.get('etag'), (await response.arrayBuffer()).byteLength] as const;
    };
    const [file = '', image = ''] = keyed;
    expect(await get(operator, image)).toEqual([200, `"${image}"`, PNG.byteLength]);
    expect((await get(operator, file))[0]).toBe(403);
    // the plain hash of a guess finds nothing, whether the session has it or not
    for (const hash of [FILE_HASH, PNG_HASH, hashOf(bytesOf('another'))]) {
      expect((await get(operator, hash))[0]).toBe(404);
    }
    expect((await get(admin, image))[0]).toBe(404);
    expect(await get(admin, PNG_HASH)).toEqual([200, `"${PNG_HASH}"`, PNG.byteLength]);
  });

  test('is answered keyed to a redacted sender, without a hint of earlier senders', async () => {
    const sent = await stage.ask<{ hash: string; name: string }>('/sessions/s1/attachments?name=guess.txt', {
      method: 'POST',
      as: operator,
      body: FILE,
      headers: { 'content-type': 'text/plain' },
    });
    expect([sent.name, keyed.includes(sent.hash)]).toEqual(['guess.txt', false]);
    const message = (hash: string, clientId: string) =>
      stage.status('/sessions/s1/messages', {
        method: 'POST',
        as: operator,
        body: { text: 'this', clientId, attachments: [{ hash, name: 'guess.txt' }] },
      });
    expect(await message(FILE_HASH, 'c2')).toBe(400);
    expect(await message(sent.hash, 'c3')).toBe(202);
    // a retry by a page that got no response
    expect(await message(sent.hash, 'c3')).toBe(202);
  });

  test('confirms no guess to a redacted sender, with or without quota', async () => {
    const other = await stage.token({ role: 'operator' });
    const send = async (as: Headers, body: Uint8Array<ArrayBuffer>) => {
      const path = '/api/v1/sessions/s1/attachments?name=guess.txt';
      const response = await stage.send(path, { method: 'POST', as, body, headers: { 'content-type': 'text/plain' } });
      const { hash } = (await response.json()) as { hash?: string };
      return { status: response.status, hash };
    };
    const [mine, again] = [await send(other, FILE), await send(other, FILE)];
    expect([mine.status, again.hash]).toEqual([201, mine.hash]);
    // one file less than a sender's quota
    await stage.parts.database.writes.run((transaction) =>
      transaction.execute({
        sql: `INSERT INTO attachments (session_id, hash, name, media_type, bytes, sent_at)
          SELECT session_id, printf('%064d', value), name, media_type, 0, sent_at
          FROM attachments, json_each(?) WHERE hash = ? AND session_id <> 's1'`,
        args: [JSON.stringify(Array.from({ length: MAX_UNNAMED_ATTACHMENTS - 2 }, (_, index) => index)), FILE_HASH],
      }),
    );
    const theirs = await send(operator, FILE);
    expect([theirs.status, theirs.hash === mine.hash]).toEqual([201, false]);
    // counts against the quota like a wrong guess, although the session has these bytes
    expect((await send(other, PNG)).status).toBe(201);
    expect((await send(other, bytesOf('one too many'))).status).toBe(409);
    expect((await send(operator, bytesOf('of somebody else'))).status).toBe(201);
  });

  test('opens an image only for the redacted sender until a message names it', async () => {
    const image = new Uint8Array([...PNG, 0]);
    const { hash } = await stage.ask<{ hash: string }>('/sessions/s1/attachments?name=own.png', {
      method: 'POST',
      as: operator,
      body: image,
      headers: { 'content-type': 'image/png' },
    });
    const path = `/api/v1/attachments/${hash}?session=s1`;
    const status = async (as: Headers) => (await stage.send(path, { as })).status;
    expect([await status(operator), await status(await stage.token({ role: 'operator' }))]).toEqual([200, 404]);
    const attachments = [
      { hash, name: 'one.png' },
      { hash, name: 'two.png' },
    ];
    const body = { text: 'see', clientId: 'own', attachments };
    await stage.ask('/sessions/s1/messages', { method: 'POST', as: operator, body });
    const named = await stage.send(`/api/v1/attachments/${hashOf(image)}?session=s1`, { as: admin });
    expect(new Uint8Array(await named.arrayBuffer())).toEqual(image);
  });
});
