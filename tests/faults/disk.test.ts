import { statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { FaultServer } from '../support/fault-server';
import { FrameReader } from '../support/frames';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { canMount, smallDisk } from '../support/small-disk';

/** Disks that become full or read-only under a running server or a runner's outbox. */
describe.runIf(canMount())('a disk', () => {
  test('full under a server causes 503 without loss, and ingest resumes once there is space', async () => {
    const disk = smallDisk('size=3m');
    const server = await startLiveServer({ dataDir: disk.folder });
    onTestFinished(() => server.stop());
    const sender = new Sender(server);
    const refusal = await sender.untilRefused();
    expect(refusal).toMatchObject({
      status: 503,
      retryAfter: '1',
      error: { code: 'unavailable', message: expect.stringContaining('disk') },
    });
    expect(await seqsOf(server)).toEqual(upTo(sender.ackedSeq));
    await server.kill9();
    disk.remount('size=30m');
    await server.restart();
    expect(await seqsOf(server)).toEqual(upTo(sender.ackedSeq));
    expect((await sender.send()).status).toBe(200);
    expect(await seqsOf(server)).toEqual(upTo(sender.ackedSeq));
  });

  test('full again is logged again, reads continue, and the server is ready once there is space', async () => {
    const disk = smallDisk('size=3m');
    const server = await startLiveServer({ dataDir: disk.folder });
    onTestFinished(() => server.stop());
    const sender = new Sender(server);
    await sender.untilRefused();
    disk.remount('size=6m');
    expect((await sender.send()).status).toBe(200);
    await sender.untilRefused();
    const statusOf = async (path: string) => (await fetch(`${server.url}${path}`, { headers: sender.headers })).status;
    for (const path of ['/api/v1/sessions', '/api/v1/sessions/disk/transcript']) {
      expect(await statusOf(path), path).toBe(200);
    }
    expect(await seqsOf(server)).toEqual(upTo(sender.ackedSeq));
    const readyIs = (status: number) =>
      vi.waitFor(async () => expect(await statusOf('/readyz')).toBe(status), { interval: 100 });
    await readyIs(503);
    disk.remount('size=30m');
    await readyIs(200);
    expect(server.output.split('not ready:')).toHaveLength(2);
    expect(server.output.split('ready again')).toHaveLength(2);
  });

  test('full under an outbox rejects new records and keeps accepted ones', async () => {
    const disk = smallDisk('size=2m');
    const server = await FaultServer.start();
    onTestFinished(() => server.close());
    server.behaviour = () => ({ kind: 'answer', status: 503 });
    const outbox = await Outbox.open(join(disk.folder, 'outbox.db'), {
      producerId: 'p',
      agentId: 'a',
      endpoint: async () => ({ url: server.url, token: undefined }),
    });
    const accepted: string[] = [];
    const hand = async (n: number) => {
      const log = { level: 'info', component: 'disk', message: `${n} ${'x'.repeat(20_000)}` } as const;
      await outbox.enqueue({ kind: 'log', agentId: 'a', occurredAt: n, log });
      accepted.push(log.message);
    };
    const fill = async () => {
      for (let n = accepted.length; n < 1_000; n += 1) await hand(n);
    };
    await expect(fill()).rejects.toMatchObject({ code: 'SQLITE_FULL' });
    expect(accepted.length).toBeGreaterThan(10);
    disk.remount('size=20m');
    await hand(accepted.length);
    server.behaviour = () => ({ kind: 'none' });
    outbox.kick();
    await outbox.idle();
    await outbox.stop();
    expect(server.ledger.messages).toEqual(accepted);
    expect(server.ledger.lost).toBe(0);
  });

  test('full during acknowledgements pauses the outbox, which continues without loss or duplicates', async () => {
    const disk = smallDisk('size=8m');
    const server = await FaultServer.start();
    onTestFinished(() => server.close());
    server.behaviour = () => ({ kind: 'answer', status: 503 });
    let isHeld: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      isHeld = resolve;
    });
    const outbox = await Outbox.open(join(disk.folder, 'outbox.db'), {
      producerId: 'p',
      agentId: 'a',
      endpoint: async () => ({ url: server.url, token: undefined }),
      onStatus: ({ trouble }) => {
        if (trouble?.kind === 'storage') isHeld();
      },
    });
    const messages = Array.from({ length: 60 }, (_, n) => `${n} ${'x'.repeat(20_000)}`);
    for (const message of messages) {
      await outbox.enqueue({
        kind: 'log',
        agentId: 'a',
        occurredAt: 1,
        log: { level: 'info', component: '', message },
      });
    }
    // another program fills the disk completely
    const { bavail, bsize } = statfsSync(disk.folder);
    writeFileSync(join(disk.folder, 'ballast'), new Uint8Array(bavail * bsize));
    server.behaviour = () => ({ kind: 'none' });
    outbox.kick();
    await held;
    disk.remount('size=20m');
    outbox.kick();
    await outbox.idle();
    await outbox.stop();
    expect(server.ledger.messages).toEqual(messages);
    expect(server.ledger.duplicates).toBeGreaterThan(0);
    expect(server.ledger.lost).toBe(0);
  });
});

/** Sends 10 kB records in order, retrying each until accepted. */
class Sender {
  ackedSeq = 0;
  readonly headers: Record<string, string>;
  readonly #server: LiveServer;

  constructor(server: LiveServer) {
    this.#server = server;
    this.headers = { authorization: `Bearer ${server.token}` };
  }

  async send(): Promise<{ status: number; retryAfter: string | null; error: unknown }> {
    const records = Array.from({ length: 5 }, (_, index) => ({
      seq: this.ackedSeq + 1 + index,
      kind: 'event',
      agentId: 'disk',
      sessionId: 'disk',
      occurredAt: 1,
      event: { type: 'CUSTOM', name: 'ballast', value: 'x'.repeat(10_000) },
    }));
    const response = await fetch(`${this.#server.url}/api/v1/events`, {
      method: 'POST',
      headers: this.headers,
      body: JSON.stringify({ producer: { id: 'disk', epoch: 1 }, records }),
    });
    const answer = (await response.json()) as { ackedSeq?: number; error?: unknown };
    this.ackedSeq = answer.ackedSeq ?? this.ackedSeq;
    return { status: response.status, retryAfter: response.headers.get('retry-after'), error: answer.error };
  }

  async untilRefused() {
    for (let sent = 0; sent < 500; sent += 1) {
      const response = await this.send();
      if (response.status !== 200) return response;
    }
    throw new Error('the disk never filled up');
  }
}

async function seqsOf(server: LiveServer): Promise<number[]> {
  const response = await fetch(`${server.url}/api/v1/stream?topic=session:disk&after=0`, {
    headers: { authorization: `Bearer ${server.token}` },
  });
  const reader = new FrameReader(response.body as ReadableStream<Uint8Array>);
  await reader.frame('up-to-date');
  await reader.cancel();
  return reader.frames.flatMap((frame) => (frame.event === 'session-event' ? [frame.data.seq] : []));
}

const upTo = (last: number) => Array.from({ length: last }, (_, index) => index + 1);
