import { Agent, request } from 'node:http';
import { MAX_REQUEST_BYTES } from '@interlude/protocol/limits';
import type { OpenApiDocument } from '@interlude/protocol/open-api';
import fc from 'fast-check';
import type { RequestOptions } from './access-stage';
import { busyAgent, requestLive } from './busy-agent';
import { malformedRequests, type WireRequest } from './malformed-requests';

/**
 * A client process that sends malformed requests over keep-alive connections, back to back. Started with an IPC
 * channel. The parent sends one MalformedOrder and receives a MalformedReport per batch.
 */
export interface MalformedOrder {
  url: string;
  document: OpenApiDocument;
  /** `authorization` header by sender. */
  tokens: Partial<Record<WireRequest['sender'], string>>;
  seed: number;
  count: number;
  connections: number;
}

export interface MalformedReport {
  sent: number;
  /** Response counts by status; failed requests by error. */
  statuses: Record<string, number>;
  /** Requests with an incorrect response, each with the response. */
  failures: string[];
  isDone: boolean;
}

/** Small, because a request that ends, archives or fences something affects the rest of its batch. */
const BATCH = 500;
const ANSWER_WITHIN_MS = 60_000;
const MOST_FAILURES = 20;
/** Node's limit for the request line plus headers. */
const MOST_HEAD = 12_000;

interface Answer {
  status: number;
  type: string;
  isPacked: boolean;
  retryAfter: string | undefined;
  body: string;
}

process.once('message', (order: MalformedOrder) => void run(order));
process.once('disconnect', () => process.exit());

async function run({ url, document, tokens, seed, count, connections }: MalformedOrder): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  // wrong tokens from this address would throttle the owner's token too
  const ask = <Model>(path: string, sent?: RequestOptions) => {
    const headers = { ...sent?.headers, authorization: (path === '/events' ? tokens.runner : tokens.admin) ?? '' };
    return requestLive<Model>({ url, token: '' }, path, { ...sent, headers });
  };
  const report: MalformedReport = { sent: 0, statuses: {}, failures: [], isDone: false };
  for (let batch = 0; report.sent < count; batch += 1) {
    const numRuns = Math.min(BATCH, count - report.sent);
    const ids = await busyAgent({ ask }, String(batch));
    const all = fc.sample(malformedRequests(document, ids), { numRuns, seed: seed + batch });
    let next = 0;
    const client = async () => {
      for (let index = next++; index < all.length; index = next++) {
        const one = all[index] as WireRequest;
        const answer = await send(url, one, tokens[one.sender], agent);
        const status = answer.status || answer.body;
        report.statuses[status] = (report.statuses[status] ?? 0) + 1;
        const wrong = faultOf(one, answer);
        if (wrong === null || report.failures.length >= MOST_FAILURES) continue;
        report.failures.push(
          `${wrong}, seed ${seed + batch}, number ${index}: ${JSON.stringify(shown(one))} → ${JSON.stringify(answer)}`,
        );
      }
    };
    await Promise.all(Array.from({ length: connections }, client));
    report.sent += numRuns;
    report.isDone = report.sent >= count;
    process.send?.(report);
  }
  agent.destroy();
  process.disconnect();
}

/** Returns the fault of a response, or null. */
function faultOf({ method, path, body: sent }: WireRequest, answer: Answer): string | null {
  const { status, type, isPacked, retryAfter, body } = answer;
  // the response to an oversized request can be lost: the server closes the connection before reading all of it
  if (status === 0) return path.length > MOST_HEAD || (sent?.length ?? 0) > MAX_REQUEST_BYTES ? null : 'no answer';
  // an overload response has Retry-After
  if (status === 503 && retryAfter !== undefined) return null;
  if (status >= 500) return `status ${status}`;
  if (status < 400 || method === 'HEAD' || isPacked || type.startsWith('text/html')) return null;
  return body.startsWith('{"error":{') ? null : 'no error of the wire';
}

/** Truncated for the report. */
function shown({ body, ...rest }: WireRequest): object {
  const text = body === null ? null : Buffer.from(body).toString('latin1').slice(0, 1_000);
  return { ...rest, path: rest.path.slice(0, 500), body: text, length: body?.length };
}

function send(url: string, one: WireRequest, token: string | undefined, agent: Agent, tries = 3): Promise<Answer> {
  return new Promise((resolve) => {
    const headers: Record<string, string> = {
      ...one.headers,
      ...(token === undefined ? {} : { authorization: token }),
    };
    if (one.body !== null) headers['content-length'] = String(one.body.length);
    const noAnswer = (why: string) =>
      resolve({ status: 0, type: '', isPacked: false, retryAfter: undefined, body: why });
    const sent = request(`${url}/`, { method: one.method, path: one.path, headers, agent });
    sent.setTimeout(ANSWER_WITHIN_MS, () => sent.destroy(new Error('no response in time')));
    sent.once('upgrade', (_response, socket) => {
      socket.destroy();
      noAnswer('upgraded');
    });
    sent.once('response', (response) => {
      const { statusCode: status = 0, headers: got } = response;
      const answer = {
        status,
        type: got['content-type'] ?? '',
        isPacked: got['content-encoding'] !== undefined,
        retryAfter: got['retry-after'],
        body: '',
      };
      // a stream never ends
      if (answer.type.startsWith('text/event-stream')) {
        response.once('error', () => undefined).destroy();
        return resolve(answer);
      }
      const isKept = status >= 400;
      response.on('data', (chunk) => {
        if (isKept && answer.body.length < 2_000) answer.body += chunk;
      });
      response.once('close', () => resolve(answer));
      response.once('error', () => resolve(answer));
    });
    sent.once('error', (error) => {
      // the server may close an idle connection just as it is reused
      if (sent.reusedSocket && tries > 0) return resolve(send(url, one, token, agent, tries - 1));
      noAnswer(`${error}, ${sent.reusedSocket ? 'on a kept' : 'on a new'} connection`);
    });
    sent.end(one.body ?? undefined);
  });
}
