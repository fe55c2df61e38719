import { startLiveServer } from '../support/live-server';
import { note, report } from './report';

/** Resume over 10,000 missed events: from the request to `up-to-date`, over loopback HTTP with `npm start`. */
const MISSED = 10_000;
const ROUNDS = 7;
const headersOf = (token: string) => ({ authorization: `Bearer ${token}` });

const server = await startLiveServer();
try {
  await write();
  const times: number[] = [];
  let bytes = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const resumed = await resume();
    if (resumed.frames !== MISSED) throw new Error(`${resumed.frames} frames of ${MISSED}`);
    times.push(resumed.ms);
    bytes = resumed.bytes;
  }
  times.sort((a, b) => a - b);
  note(`resume: ${MISSED} events`, bytes / 1024 / 1024, 'MiB');
  report(`resume: ${MISSED} missed events to up-to-date, median`, times[ROUNDS >> 1] ?? Number.NaN, 'ms', {
    atMost: 300,
  });
} finally {
  await server.stop();
}

/** Writes events that remain one row each; deltas would fold. */
async function write(): Promise<void> {
  for (let from = 0; from < MISSED; from += 500) {
    const batch = Array.from({ length: 500 }, (_, index) => {
      const text = `event ${from + index} of a session that somebody was away from for a while`;
      const event = { type: 'CUSTOM', name: 'bench', value: { text, of: MISSED } };
      return {
        seq: from + index + 1,
        kind: 'event',
        agentId: 'bench',
        sessionId: 'bench',
        occurredAt: Date.now(),
        event,
      };
    });
    const response = await fetch(`${server.url}/api/v1/events`, {
      method: 'POST',
      headers: { ...headersOf(server.token), 'content-type': 'application/json' },
      body: JSON.stringify({ producer: { id: 'bench', epoch: 1 }, records: batch }),
    });
    if (!response.ok) throw new Error(await response.text());
    await response.arrayBuffer();
  }
}

async function resume(): Promise<{ ms: number; frames: number; bytes: number }> {
  const beganAt = performance.now();
  const response = await fetch(`${server.url}/api/v1/stream?topic=session:bench&after=0`, {
    headers: headersOf(server.token),
  });
  const decoder = new TextDecoder();
  let frames = 0;
  let bytes = 0;
  let tail = '';
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    const text = tail + decoder.decode(chunk, { stream: true });
    const end = text.lastIndexOf('\n\n') + 2;
    tail = text.slice(end);
    frames += text.slice(0, end).split('\nevent: session-event\n').length - 1;
    if (text.includes('event: up-to-date')) break;
  }
  return { ms: performance.now() - beganAt, frames, bytes };
}
