import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { WebhookBody } from '@interlude/protocol/inbox';
import { INBOX_KINDS } from '@interlude/protocol/vocabulary';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { unscoped } from '@/lib/server/access/request-context';
import { clampDeadlines } from '@/lib/server/commands/clamp-deadlines';
import { readInbox } from '@/lib/server/queries/read-inbox';
import { readWebhookDeliveries } from '@/lib/server/queries/read-webhook';
import { callWebhook, openedBody, testBody, webhookHeaders } from '@/lib/server/webhook/call-webhook';
import { WebhookSender } from '@/lib/server/webhook/webhook-sender';
import { type WebhookSettings, webhookSetting } from '@/lib/server/webhook/webhook-settings';
import { callRoute } from '../../support/call-route';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** A receiver on loopback, and a controlled clock. */
const T0 = 1_795_170_000_000;
const DAY_MS = 24 * 3_600_000;
let target: InProcessTarget;
let now = T0;
let seq = 0;
let receiver: Server;
let called: { headers: IncomingHttpHeaders; body: WebhookBody }[] = [];
let answers: number[] = [];
let isHung = false;
let settings: WebhookSettings;
beforeEach(async () => {
  now = T0;
  seq = 0;
  called = [];
  answers = [];
  isHung = false;
  target = await inProcessTarget(() => now);
  receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      called.push({ headers: request.headers, body: JSON.parse(text) });
      if (isHung) return;
      response.writeHead(answers.shift() ?? 200, { location: 'http://127.0.0.1:9/' }).end('ok');
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const { port } = receiver.address() as AddressInfo;
  const set = webhookSetting({
    INTERLUDE_WEBHOOK_URL: `http://127.0.0.1:${port}/hook`,
    INTERLUDE_WEBHOOK_SECRET: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    INTERLUDE_PUBLIC_URL: 'https://interlude.example/',
  });
  settings = set.webhook as WebhookSettings;
  await sender().send();
});
afterEach(async () => {
  await new Promise((resolve) => receiver.close(resolve));
  await target.close();
});

const sender = (webhook: WebhookSettings | null = settings) =>
  new WebhookSender({ database: target.database, now: () => now, webhook });
const asks = (id: string, sessionId = 's1') =>
  ingest(target, [
    record(++seq, { sessionId, event: { type: 'RUN_STARTED', runId: id } }),
    record(++seq, {
      sessionId,
      event: {
        type: 'CUSTOM',
        name: 'request:opened',
        value: { request_id: id, kind: 'permission', title: 'Run <!channel> & go', input: {} },
      },
    }),
  ]);
const answered = (id: string) =>
  ingest(target, [
    record(++seq, {
      event: { type: 'CUSTOM', name: 'request:resolved', value: { request_id: id, outcome: 'allowed' } },
    }),
  ]);
async function passes(ms: number, by = sender()): Promise<void> {
  now += ms;
  await by.send();
}
const log = async () =>
  (await readWebhookDeliveries(unscoped(target.database), { before: null, limit: 50 })).deliveries;

it('signs as Standard Webhooks do', async () => {
  // the example of the reference implementations
  const headers = await webhookHeaders(settings.key, {
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    at: 1_614_265_330_000,
    body: '{"test": 2432232314}',
  });
  expect(headers['webhook-signature']).toBe('v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=');
});

it('sends an item after a short delay, and none from before it was configured', async () => {
  await asks('q1');
  await passes(0);
  expect(called).toEqual([]);
  await passes(3_000);
  expect(called).toHaveLength(1);
  const [{ headers, body } = { headers: {} as IncomingHttpHeaders, body: null }] = called;
  expect(body).toMatchObject({
    text: 'a1 asks for a permission: Run &lt;!channel&gt; &amp; go <https://interlude.example/sessions/s1#request-q1|Open>',
    interlude: { type: 'inbox.opened', item: { kind: 'permission', sessionId: 's1', agentId: 'a1' } },
  });
  expect(headers['webhook-id']).toMatch(/^inbox_\d+$/);
  expect(headers['webhook-signature']).toMatch(/^v1,/);
  await passes(60_000);
  expect(called).toHaveLength(1);
  expect(await log()).toMatchObject([{ state: 'delivered', attempts: 1, status: 200, error: null }]);
});

it('sends nothing for an item answered meanwhile', async () => {
  await asks('q1');
  await passes(0);
  await answered('q1');
  await passes(5_000);
  expect(called).toEqual([]);
  expect(await log()).toMatchObject([{ state: 'withdrawn', attempts: 0 }]);
});

it('sends an item that was seen by mistake, once it is unseen', async () => {
  const mark = async (name: string) => {
    const body = { ids: [...shown.items.map(({ id }) => id)], mark: name };
    expect((await callRoute(target.context, 'POST', '/inbox/marks', { body })).status).toBe(200);
  };
  await asks('q1');
  await passes(0);
  const shown = await readInbox(unscoped(target.database), { after: null, limit: 50 });
  await mark('seen');
  await passes(5_000);
  expect(await log()).toMatchObject([{ state: 'withdrawn', attempts: 0 }]);
  await mark('unseen');
  await passes(3_000);
  expect(called).toHaveLength(1);
  expect(await log()).toMatchObject([{ state: 'delivered', attempts: 1 }]);
});

it('retries with growing delays and the same id, and gives up after a day', async () => {
  answers = [500, 302, 200];
  await asks('q1');
  await passes(0);
  await passes(3_000);
  expect(await log()).toMatchObject([{ state: 'waiting', attempts: 1, status: 500, error: 'it responded with 500' }]);
  await passes(4_000);
  expect(called).toHaveLength(1);
  await passes(3_000);
  expect(await log()).toMatchObject([{ attempts: 2, error: 'redirects are not followed' }]);
  await passes(30_000);
  expect(await log()).toMatchObject([{ state: 'delivered', attempts: 3, status: 200 }]);
  expect(new Set(called.map(({ headers }) => headers['webhook-id'])).size).toBe(1);

  await asks('q2');
  await passes(0);
  for (let hour = 0; hour < 40; hour++) {
    answers = [500];
    await passes(3_600_000);
  }
  expect((await log())[0]).toMatchObject({ state: 'gave-up', status: 500 });
});

it('sends each delivery once across instances, and resumes after one dies', async () => {
  await asks('q1', 's1');
  await asks('q2', 's2');
  await passes(0);
  now += 3_000;
  await Promise.all([sender().send(), sender().send(), sender().send()]);
  expect(called).toHaveLength(2);

  await asks('q3', 's3');
  await passes(0);
  now += 3_000;
  // claimed by an instance that was killed before sending
  await target.database.writes.run((transaction) =>
    transaction.execute({
      sql: `UPDATE webhook_deliveries SET lease_until = ?, attempts = 1 WHERE state = 'waiting'`,
      args: [now + 30_000],
    }),
  );
  await passes(10_000);
  expect(called).toHaveLength(2);
  await passes(20_000);
  expect(called).toHaveLength(3);
});

it('waits no longer than the retry delay after the clock is set back a day', async () => {
  answers = [500];
  await asks('q1');
  await passes(0);
  await passes(3_000);
  expect(called).toHaveLength(1);
  now -= 24 * 3_600_000;
  await target.database.writes.run((transaction) => clampDeadlines(transaction, now, -24 * 3_600_000));
  await passes(3_600_000);
  expect(called).toHaveLength(2);
});

it('delays the first attempt only briefly after the clock is set back a day', async () => {
  await asks('q1');
  await passes(0);
  now -= DAY_MS;
  await target.database.writes.run((transaction) => clampDeadlines(transaction, now, -DAY_MS));
  await passes(3_000);
  expect(called).toHaveLength(1);
});

it('neither gives up early nor retries forever when the clock steps between attempts', async () => {
  answers = [500];
  await asks('q1');
  await passes(0);
  await passes(3_000);
  const moved = async (by: number) => {
    now += by;
    await target.database.writes.run((transaction) => clampDeadlines(transaction, now, by));
  };
  answers = [500];
  await moved(2 * DAY_MS);
  await passes(10_000);
  expect(await log()).toMatchObject([{ state: 'waiting', attempts: 2 }]);
  for (let hour = 0; hour < 60; hour++) {
    answers = [500];
    await moved(-DAY_MS);
    await passes(3_600_000 * 1.3);
  }
  expect(await log()).toMatchObject([{ state: 'gave-up' }]);
  expect(called.length).toBeGreaterThan(20);
});

it('enqueues new items while a silent receiver blocks sending', async () => {
  answers = [];
  isHung = true;
  for (let index = 0; index < 6; index++) await asks(`q${index}`, `s${index}`);
  await passes(0);
  now += 3_000;
  const keeper = sender();
  keeper.start();
  await expect.poll(() => called.length).toBeGreaterThan(0);
  await asks('late', 'late');
  await expect.poll(async () => (await log()).length).toBe(7);
  keeper.close();
  receiver.closeAllConnections();
});

it('sends items that opened while no process was running, however old', async () => {
  await asks('q1');
  await passes(61 * 60_000);
  await passes(3_000);
  expect(called).toHaveLength(1);
  expect(await log()).toMatchObject([{ state: 'delivered' }]);
});

it('sends only the last hour’s items when first configured', async () => {
  await target.database.writes.run((transaction) => transaction.execute('DELETE FROM webhook_cursor'));
  await asks('q1', 's1');
  now += 61 * 60_000;
  await asks('q2', 's2');
  await passes(60_000);
  await passes(3_000);
  expect(called.map(({ body }) => body.interlude.item?.sessionId)).toEqual(['s2']);
});

it('sends the URL’s user name and password as a header, and nowhere else', async () => {
  const { url } = settings;
  const set = webhookSetting({ INTERLUDE_WEBHOOK_URL: url.replace('//', '//us%C3%A9r:p%40w@') });
  expect(set.webhook).toMatchObject({ url });
  const told = { id: 'x', at: now, body: testBody(null) };
  expect(await callWebhook(set.webhook as WebhookSettings, told)).toMatchObject({ delivered: true });
  expect(called[0]?.headers.authorization).toBe(`Basic ${Buffer.from('usér:p@w').toString('base64')}`);
});

it('is disabled by an invalid setting, with a message', () => {
  const said = vi.spyOn(console, 'error').mockImplementation(() => {});
  const url = { INTERLUDE_WEBHOOK_URL: 'https://example.com/x' };
  expect(webhookSetting({})).toEqual({ webhook: null, problem: null });
  expect(webhookSetting(url).webhook).toMatchObject({ key: null, kinds: INBOX_KINDS, publicUrl: null });
  expect(webhookSetting({ ...url, INTERLUDE_WEBHOOK_KINDS: 'failure, question' }).webhook?.kinds).toEqual([
    'question',
    'failure',
  ]);
  const beneath = { INTERLUDE_PUBLIC_URL: 'https://example.com/interlude/', INTERLUDE_BASE_PATH: '/interlude' };
  expect(webhookSetting({ ...url, ...beneath }).webhook?.publicUrl).toBe('https://example.com/interlude');
  for (const wrong of [
    { INTERLUDE_WEBHOOK_URL: 'ftp://example.com' },
    { ...url, INTERLUDE_WEBHOOK_SECRET: 'short' },
    { ...url, INTERLUDE_WEBHOOK_SECRET: 'whsec_!' },
    { ...url, INTERLUDE_WEBHOOK_KINDS: 'failures' },
    { ...url, INTERLUDE_PUBLIC_URL: 'nowhere' },
    { ...url, INTERLUDE_PUBLIC_URL: 'https://user:pw@example.com' },
    { ...url, INTERLUDE_PUBLIC_URL: 'https://example.com', INTERLUDE_BASE_PATH: '/interlude' },
    { INTERLUDE_WEBHOOK_URL: 'https://us%er:pw@example.com' },
  ]) {
    expect(webhookSetting(wrong)).toMatchObject({ webhook: null, problem: expect.any(String) });
  }
  expect(said).toHaveBeenCalledTimes(8);
  vi.restoreAllMocks();
});

it('puts an agent’s name on one line', () => {
  const marks = { seenAt: null, snoozedUntil: null, claim: null, doneAt: null };
  const about = { sessionId: null, title: '*bold*\n<@U1>\u202e', count: 1, request: null, messageId: null, from: null };
  const item = {
    id: 'i',
    kind: 'failure' as const,
    agentId: '<a|b>',
    session: null,
    since: 1,
    openedPosition: '1',
    updatedPosition: '1',
    ...about,
    ...marks,
  };
  expect(openedBody(item, null).text).toBe('&lt;a|b&gt; has failed: *bold* &lt;@U1&gt;');
});
