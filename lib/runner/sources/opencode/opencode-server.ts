import { isObject } from '@interlude/protocol/fields';
import { withDeadline } from '../../host/server-request';

/**
 * An OpenCode server's HTTP interface, as far as it is used here.
 *
 * Failure: every request has a time limit: while the server starts, its port accepts connections and never answers on
 * them. No redirect is followed: the password is for the address it was given with.
 *
 * @see opencode-ai 1.18.33, `GET /doc`
 */
export interface ServerAddress {
  url: string;
  user: string;
  /** Null where the server asks for none. */
  password: string | null;
}

export interface Answer {
  status: number;
  /** As JSON; a text that is none as it is. */
  body: unknown;
}

const ANSWER_WITHIN_MS = 10_000;
/** An answer that is longer would not fit into the runner. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

export class OpencodeServer {
  readonly #url: string;
  readonly #headers: Record<string, string>;
  readonly #signal: AbortSignal;

  constructor({ url, user, password }: ServerAddress, signal: AbortSignal) {
    this.#url = url.replace(/\/+$/, '');
    this.#signal = signal;
    const basic = Buffer.from(`${user}:${password}`).toString('base64');
    this.#headers = password === null ? {} : { authorization: `Basic ${basic}` };
  }

  /** @throws Error if no whole answer came in time */
  async request(method: 'GET' | 'POST', path: string, body?: unknown, withinMs = ANSWER_WITHIN_MS): Promise<Answer> {
    return await withDeadline(withinMs, this.#signal, async (signal) => {
      const json = body === undefined ? {} : { body: JSON.stringify(body) };
      const headers = { ...this.#headers, 'content-type': 'application/json' };
      const response = await fetch(this.#url + path, { method, headers, ...json, signal, redirect: 'manual' });
      const text = await wholeText(response);
      try {
        return { status: response.status, body: text === '' ? '' : JSON.parse(text) };
      } catch {
        return { status: response.status, body: text };
      }
    });
  }

  /** The events of all directories, from now on. */
  async events(signal: AbortSignal): Promise<Response> {
    const headers = { ...this.#headers, accept: 'text/event-stream' };
    return await fetch(`${this.#url}/global/event`, { headers, signal, redirect: 'manual' });
  }
}

async function wholeText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new Error('an answer is too long');
    parts.push(decoder.decode(chunk, { stream: true }));
  }
  return parts.join('') + decoder.decode();
}

/** The reason in an answer that is none of what was asked for. */
export function refusalIn({ status, body }: Answer): string {
  const { message, data } = isObject(body) ? body : {};
  const said = isObject(data) && typeof data.message === 'string' ? data.message : message;
  return typeof said === 'string' && said !== ''
    ? `OpenCode answered ${status}: ${said}`
    : `OpenCode answered ${status}`;
}

/** @param directory a server has an instance for each, and another one knows nothing of the session */
export function inDirectory(path: string, directory: string | null): string {
  return directory === null ? path : `${path}?directory=${encodeURIComponent(directory)}`;
}
