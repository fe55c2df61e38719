import { connect, type Socket } from 'node:net';
import { startLiveServer, startNextServer } from '../support/live-server';
import { startBareServer } from './baseline-servers';
import { note, report } from './report';

/**
 * Small requests per second: an empty GET, and records posted one at a time by 64 producers that each wait for the
 * response. Compares `npm start`, whose front door serves the API itself; `next start`, where each request goes through
 * a Next route; and an empty node:http server. The servers alternate, so that other load affects all of them. The
 * client writes prepared requests to plain sockets to keep its own cost low.
 */
const CONNECTIONS = 64;
const ROUNDS = 3;
const WARM_UP_MS = 1_000;
const MEASURED_MS = 2_000;

interface Server {
  url: string;
  token: string;
  stop(): Promise<void>;
}

const servers = {
  door: await startLiveServer(),
  next: await startNextServer('a-token-for-the-bench-0123456789'),
  bare: await startBareServer(),
} satisfies Record<string, Server>;
type Name = keyof typeof servers;
const NAMES = Object.keys(servers) as Name[];

let epoch = 1;

try {
  for (const [what, requestOf] of Object.entries({ 'empty GET': healthz, 'POST one record': events })) {
    const rates: Record<Name, number[]> = { door: [], next: [], bare: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const name of NAMES) rates[name].push(await rateOf(servers[name], requestOf));
    }
    const median = (name: Name) => rates[name].sort((a, b) => a - b)[ROUNDS >> 1] ?? 0;
    note(`api-speed: ${what}, front door`, median('door'), 'requests/s');
    note(`api-speed: ${what}, Next's route`, median('next'), 'requests/s');
    note(`api-speed: ${what}, bare node:http`, median('bare'), 'requests/s');
    note(`api-speed: ${what}, front door, relative to node:http`, median('door') / median('bare'), '×');
    report(`api-speed: ${what}, front door, relative to Next's route`, median('door') / median('next'), '×', {
      atLeast: 5,
    });
  }
} finally {
  for (const name of NAMES) await servers[name].stop();
}

type RequestOf = (server: Server, producer: number) => (seq: number) => string;

function healthz({ url }: Server) {
  const text = `GET /healthz HTTP/1.1\r\nhost: ${new URL(url).host}\r\n\r\n`;
  return () => text;
}

function events({ url, token }: Server, producer: number) {
  const own = epoch;
  return (seq: number) => {
    const body = JSON.stringify({
      producer: { id: `bench-${producer}`, epoch: own },
      records: [
        {
          seq,
          kind: 'event',
          agentId: `agent-${producer}`,
          sessionId: `session-${producer}`,
          occurredAt: Date.now(),
          event: { type: 'CUSTOM', name: 'bench', value: { text: 'x'.repeat(80) } },
        },
      ],
    });
    return `POST /api/v1/events HTTP/1.1\r\nhost: ${new URL(url).host}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  };
}

/** @returns requests per second after the warm-up */
async function rateOf(server: Server, requestOf: RequestOf): Promise<number> {
  epoch += 1;
  let count = 0;
  let isOver = false;
  const clients = Array.from({ length: CONNECTIONS }, (_, index) => {
    const next = requestOf(server, index);
    return keepAsking(server.url, next, () => {
      count += 1;
      return !isOver;
    });
  });
  await pause(WARM_UP_MS);
  count = 0;
  const since = performance.now();
  await pause(MEASURED_MS);
  const rate = (count * 1000) / (performance.now() - since);
  isOver = true;
  await Promise.all(clients);
  return rate;
}

/** @param goesOn checked after each response; true sends another request */
function keepAsking(url: string, requestOf: (seq: number) => string, goesOn: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const socket: Socket = connect(Number(port), hostname);
    let seq = 1;
    let text = '';
    socket.setNoDelay(true).setEncoding('latin1');
    socket.once('connect', () => socket.write(requestOf(seq)));
    socket.once('error', reject);
    socket.on('data', (chunk: string) => {
      text += chunk;
      if (!isWhole(text)) return;
      if (!text.startsWith('HTTP/1.1 200')) return void socket.destroy(new Error(text));
      text = '';
      seq += 1;
      if (goesOn()) return void socket.write(requestOf(seq));
      socket.destroy();
      resolve();
    });
  });
}

/** True if the text is one complete response. */
function isWhole(text: string): boolean {
  const end = text.indexOf('\r\n\r\n');
  if (end < 0) return false;
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, end));
  return length === null ? text.endsWith('0\r\n\r\n') : text.length >= end + 4 + Number(length[1]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
