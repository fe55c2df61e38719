import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { Webhook } from 'standardwebhooks';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WebhookSender } from '@/lib/server/webhook/webhook-sender';
import { type WebhookSettings, webhookSetting } from '@/lib/server/webhook/webhook-settings';
import { type InProcessTarget, ingest, inProcessTarget, record } from '../../support/ingest-target';

/** Real deliveries over HTTP, verified by the Standard Webhooks reference library. */
const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER_SECRET = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
const MINUTE_MS = 60_000;
/** Longer than the delay before an item is sent. */
const STOOD_MS = 3_000;

interface Delivery {
  headers: Record<string, string>;
  body: string;
}

let target: InProcessTarget;
let seq = 0;
/** The server's clock relative to the receiver's. */
let offsetMs = 0;
let answers: number[] = [];
let deliveries: Delivery[] = [];
let url = '';
let stopReceiver: () => Promise<unknown>;

const now = () => Date.now() + offsetMs;

beforeEach(async () => {
  [seq, offsetMs, answers, deliveries] = [0, 0, [], []];
  const receiver = createServer(async (request, response) => {
    deliveries.push({ headers: request.headers as Record<string, string>, body: await text(request) });
    response.writeHead(answers.shift() ?? 204).end();
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
  stopReceiver = () => once(receiver.close(), 'close');
  target = await inProcessTarget(now);
});
afterEach(async () => {
  await target.close();
  await stopReceiver();
});

function senderWith(secret: string): WebhookSender {
  const { webhook } = webhookSetting({ INTERLUDE_WEBHOOK_URL: url, INTERLUDE_WEBHOOK_SECRET: secret });
  return new WebhookSender({ database: target.database, now, webhook: webhook as WebhookSettings });
}

/** Opens a permission request and has it sent. */
async function deliver(sender: WebhookSender): Promise<Delivery> {
  await sender.send();
  const opened = { request_id: 'q1', kind: 'permission', title: 'Run “ls” in ~/größe 🐋', input: {} };
  await ingest(target, [
    record(++seq, { event: { type: 'RUN_STARTED', runId: 'r1' } }),
    record(++seq, { event: { type: 'CUSTOM', name: 'request:opened', value: opened } }),
  ]);
  await sender.send();
  offsetMs += STOOD_MS;
  await sender.send();
  expect(deliveries).toHaveLength(1);
  return deliveries[0] as Delivery;
}

describe('the reference library', () => {
  test('accepts a delivery and reads its body', async () => {
    const { headers, body } = await deliver(senderWith(SECRET));
    expect(new Webhook(SECRET).verify(body, headers)).toMatchObject({
      text: expect.stringContaining('Run “ls” in ~/größe 🐋'),
      interlude: { type: 'inbox.opened', item: { kind: 'permission', sessionId: 's1' } },
    });
  });

  test('accepts a delivery signed with a plain-text secret, given as raw', async () => {
    const secret = 'sixteen characters or more';
    const { headers, body } = await deliver(senderWith(secret));
    expect(() => new Webhook(secret, { format: 'raw' }).verify(body, headers)).not.toThrow();
  });

  test('accepts a retry long after the first attempt, under the same id', async () => {
    offsetMs = -60 * MINUTE_MS;
    answers = [500];
    const sender = senderWith(SECRET);
    const first = await deliver(sender);
    offsetMs = 0;
    await sender.send();
    expect(deliveries).toHaveLength(2);
    const { headers, body } = deliveries[1] as Delivery;
    expect(headers['webhook-id']).toBe(first.headers['webhook-id']);
    expect(() => new Webhook(SECRET).verify(body, headers)).not.toThrow();
  });

  test('rejects a tampered body', async () => {
    const { headers, body } = await deliver(senderWith(SECRET));
    const tampered = body.replace('"permission"', '"question"');
    expect(tampered).not.toBe(body);
    expect(() => new Webhook(SECRET).verify(tampered, headers)).toThrow('No matching signature found');
  });

  test('rejects a delivery under another id', async () => {
    const { headers, body } = await deliver(senderWith(SECRET));
    const renamed = { ...headers, 'webhook-id': 'inbox_0' };
    expect(() => new Webhook(SECRET).verify(body, renamed)).toThrow('No matching signature found');
  });

  test('rejects an old timestamp, and a fresh one on an old signature', async () => {
    offsetMs = -6 * MINUTE_MS;
    const { headers, body } = await deliver(senderWith(SECRET));
    const webhook = new Webhook(SECRET);
    expect(() => webhook.verify(body, headers)).toThrow('Message timestamp too old');
    const freshened = { ...headers, 'webhook-timestamp': String(Math.floor(Date.now() / 1_000)) };
    expect(() => webhook.verify(body, freshened)).toThrow('No matching signature found');
  });

  test('rejects a delivery signed with another secret', async () => {
    const { headers, body } = await deliver(senderWith(OTHER_SECRET));
    expect(() => new Webhook(SECRET).verify(body, headers)).toThrow('No matching signature found');
    expect(() => new Webhook(OTHER_SECRET).verify(body, headers)).not.toThrow();
  });
});
