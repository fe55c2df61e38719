import { get } from 'node:http';
import { startLiveServer } from '../support/live-server';
import { startBareServer, startNchanServer } from './baseline-servers';
import { note, report } from './report';

/**
 * Latency from POST to a subscriber's frame over loopback HTTP with `npm start`. Each event carries its request's start
 * time, read when the frame arrives. Ten agents send one event per request. A bare node:http server and, if installed,
 * nginx with nchan alternate with it under the same load; both store nothing and authenticate nothing.
 */
const AGENTS = 10;
const WARM_UP_MS = 3_000;
const MEASURED_MS = 10_000;

interface Server {
  url: string;
  token: string;
  stop(): Promise<void>;
}

const ours = await startLiveServer();
const bare = await startBareServer();
const nchan = await startNchanServer();
try {
  const few = await run(ours, 'few', 100, 100);
  // Time of the disk write that precedes publication; the rest is processing.
  note('fan-out: 100 subscribers, 100 events/s: response, p99', few.ackPercentile(0.99), 'ms');
  note('fan-out: 100 subscribers, 100 events/s: p50', few.percentile(0.5), 'ms');
  report('fan-out: 100 subscribers, 100 events/s: p99', few.percentile(0.99), 'ms', { atMost: 25 });
  for (const eventsPerSecond of [20, 50, 100]) {
    const name = `fan-out: 1000 subscribers, ${eventsPerSecond} events/s`;
    const least = await run(bare, `bare-${eventsPerSecond}`, 1000, eventsPerSecond);
    const inC = nchan === null ? null : await run(nchan, `nchan-${eventsPerSecond}`, 1000, eventsPerSecond);
    const many = await run(ours, `many-${eventsPerSecond}`, 1000, eventsPerSecond);
    note(`${name}: p50`, many.percentile(0.5), 'ms');
    note(`${name}: p99`, many.percentile(0.99), 'ms');
    note(`${name}: p50, bare server`, least.percentile(0.5), 'ms');
    note(`${name}: p99, bare server`, least.percentile(0.99), 'ms');
    report(`${name}: p99, relative to the bare server`, many.percentile(0.99) / least.percentile(0.99), '×', {
      atMost: 2,
    });
    if (inC !== null) {
      note(`${name}: p50, nchan`, inC.percentile(0.5), 'ms');
      note(`${name}: p99, nchan`, inC.percentile(0.99), 'ms');
      note(`${name}: p50, relative to nchan`, many.percentile(0.5) / inC.percentile(0.5), '×');
      note(`${name}: p99, relative to nchan`, many.percentile(0.99) / inC.percentile(0.99), '×');
      note(`${name}: share of frames received, nchan`, inC.share, '');
    }
    report(`${name}: share of frames received`, many.share, '', { atLeast: 1 });
  }
} finally {
  await ours.stop();
  await bare.stop();
  await nchan?.stop();
}

async function run(server: Server, name: string, subscriberCount: number, eventsPerSecond: number) {
  const sessionId = `bench-${name}`;
  const latencies: number[] = [];
  const acks: number[] = [];
  let measuredFrom = Number.POSITIVE_INFINITY;
  const subscribers = await Promise.all(
    Array.from({ length: subscriberCount }, () =>
      subscribe(server, sessionId, (sentAt) => {
        if (sentAt >= measuredFrom) latencies.push(performance.now() - sentAt);
      }),
    ),
  );
  const perAgent = Math.round((eventsPerSecond * (WARM_UP_MS + MEASURED_MS)) / 1000 / AGENTS);
  const intervalMs = (1000 * AGENTS) / eventsPerSecond;
  const startAt = performance.now() + 200;
  measuredFrom = startAt + WARM_UP_MS;
  const sent = await Promise.all(
    Array.from({ length: AGENTS }, (_, agent) =>
      // a session has one agent, so the ten producers are its outboxes
      produce(
        server,
        sessionId,
        `${name}-${agent}`,
        perAgent,
        startAt + (agent * intervalMs) / AGENTS,
        intervalMs,
        (sentAt) => {
          if (sentAt >= measuredFrom) acks.push(performance.now() - sentAt);
        },
      ),
    ),
  );
  const sentCount = sent.reduce((sum, count) => sum + count, 0);
  await Promise.race([
    Promise.all(subscribers.map((subscriber) => subscriber.received(sentCount))),
    new Promise((resolve) => setTimeout(resolve, 10_000)),
  ]);
  const received = subscribers.reduce((sum, subscriber) => sum + subscriber.inOrder(), 0);
  for (const subscriber of subscribers) subscriber.close();
  return {
    share: received / (sentCount * subscriberCount),
    percentile: percentilesOf(latencies),
    ackPercentile: percentilesOf(acks),
  };
}

function percentilesOf(times: number[]): (part: number) => number {
  times.sort((a, b) => a - b);
  return (part) => times[Math.floor(times.length * part)] ?? Number.NaN;
}

/** Resolves once the subscriber is live. */
function subscribe(server: Server, sessionId: string, onFrame: (sentAt: number) => void): Promise<Subscriber> {
  const { promise, resolve, reject } = deferred<Subscriber>();
  let last = 0;
  let inOrder = 0;
  let tail = '';
  let tell = () => {};
  const subscriber: Subscriber = {
    received: async (wanted) => {
      while (inOrder < wanted) await new Promise<void>((told) => (tell = told));
    },
    inOrder: () => inOrder,
    close: () => request.destroy(),
  };
  const url = `${server.url}/api/v1/stream?topic=session:${sessionId}`;
  const headers = { authorization: `Bearer ${server.token}`, accept: 'text/event-stream' };
  const request = get(url, { headers, agent: false }, (response) => {
    // so that its waiters don't hang
    response.on('error', reject).on('close', () => reject(new Error(`${url} ended`)));
    response.setEncoding('utf8').on('data', (chunk: string) => {
      const text = tail + chunk;
      const end = text.lastIndexOf('\n\n') + 2;
      tail = text.slice(end);
      const whole = text.slice(0, end);
      // nchan starts with a comment
      if (/^(event: up-to-date|: hi)$/m.test(whole)) resolve(subscriber);
      for (const [, id, sub = '0', sentAt] of whole.matchAll(
        /id: (\d+)(?::(\d+))?\n(?:event.*\n)?data.*"sentAt":([\d.]+)/g,
      )) {
        onFrame(Number(sentAt));
        const place = Number(id) * 10_000 + Number(sub);
        if (place > last) inOrder += 1;
        last = place;
      }
      tell();
    });
  });
  request.on('error', reject);
  return promise;
}

interface Subscriber {
  /** Resolves when the nth frame arrives in order. */
  received(wanted: number): Promise<void>;
  inOrder(): number;
  close(): void;
}

function deferred<T>() {
  let resolve!: (value: T) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((ok, failed) => {
    resolve = ok;
    reject = failed;
  });
  return { promise, resolve, reject };
}

async function produce(
  server: Server,
  sessionId: string,
  id: string,
  count: number,
  startAt: number,
  intervalMs: number,
  onAck: (sentAt: number) => void,
) {
  for (let seq = 1; seq <= count; seq += 1) {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, startAt + seq * intervalMs - performance.now())));
    const sentAt = performance.now();
    const response = await fetch(`${server.url}/api/v1/events`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${server.token}`,
        'content-type': 'application/json',
        'x-bench': `session:${sessionId}`,
      },
      body: JSON.stringify({
        producer: { id, epoch: 1 },
        records: [
          {
            seq,
            kind: 'event',
            agentId: sessionId,
            sessionId,
            occurredAt: Date.now(),
            event: { type: 'CUSTOM', name: 'bench', value: { text: 'x'.repeat(80) }, sentAt },
          },
        ],
      }),
    });
    if (!response.ok) throw new Error(await response.text());
    await response.arrayBuffer();
    onAck(sentAt);
  }
  return count;
}
