import { setTimeout as pause } from 'node:timers/promises';
import { fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import type { ApiMessage } from '../../adapters/agentapi/agentapi-frames';
import { parseScreenPrompt, type ScreenPrompt } from '../../adapters/agentapi/screen-prompt';
import { displayUrl, isUnsent, readBeginning, readEvents, untimedRequest } from '../../host/agent-http';
import type { AttachmentFile } from '../../host/attachment-store';
import { readAttachment } from '../../host/read-attachment';
import { connectionMessage, isLoopback } from '../../host/server-request';

export interface AgentApiServerOptions {
  url: string;
  headers: Record<string, string>;
  pass(dir: 'in' | 'out', msg: object): Promise<void>;
  signal: AbortSignal;
}

export type PostResult =
  | { kind: 'accepted' }
  /** `later`: retry without counting an attempt. @param reason a sentence without its period */
  | { kind: 'later' | 'refused'; reason: string };

const REQUEST_MS = 10_000;
const UPLOAD_MS = 60_000;
/** Time in which the selection on the screen must move. */
const MOVE_MS = 3_000;
const CHECK_MS = 50;
const QUOTED = 400;
const MAX_EXPLAINED = 16 * 1024;
export const KEYS = { down: '\x1b[B', up: '\x1b[A', enter: '\r', escape: '\x1b' } as const;

/**
 * HTTP client of an AgentAPI server. Every request and response passes through the adapter.
 *
 * Failure: a message may take as long as its turn (`transport: acp` responds only then and blocks other requests
 * meanwhile), so a slow response is not a failure.
 */
export class AgentApiServer {
  readonly #options: AgentApiServerOptions;
  /** Latest screen of the stream; null without a stream. */
  screen: string | null = null;
  /** Number of stream events, posts and post responses so far. A poll's response is dropped if it changed meanwhile. */
  steps = 0;
  #lastStatus: number | null = null;
  #polling: Promise<unknown> = Promise.resolve();

  constructor(options: AgentApiServerOptions) {
    this.#options = options;
  }

  /** @param content trimmed and not empty */
  async post(content: string, messageId: string): Promise<PostResult> {
    const { url, headers, pass, signal } = this.#options;
    const body = { content, type: 'user' };
    this.steps += 1;
    void pass('out', { method: 'POST', path: '/message', body, messageId });
    let response: Response;
    try {
      const json = { ...headers, 'content-type': 'application/json' };
      response = await untimedRequest(`${url}/message`, {
        method: 'POST',
        headers: json,
        body: JSON.stringify(body),
        signal,
      });
    } catch (error) {
      await pass('in', { answer: 'message', status: 0, body: connectionMessage(error) });
      if (isUnsent(error))
        return {
          kind: 'later',
          reason: `AgentAPI can’t be reached at ${displayUrl(url)} (${connectionMessage(error)})`,
        };
      return {
        kind: 'refused',
        reason: `the connection broke before AgentAPI responded (${connectionMessage(error)}); check the terminal, and send the message again if it is missing`,
      };
    }
    const text = await readBeginning(response, MAX_EXPLAINED);
    this.steps += 1;
    await pass('in', {
      answer: 'message',
      status: response.status,
      body: parseJson(text) ?? truncateText(text, QUOTED),
    });
    return response.ok ? { kind: 'accepted' } : refusalOf(response.status, text, url);
  }

  /**
   * Uploads a file; identical uploads yield the same file.
   * @returns its path on the server's machine, or its local path for a local server without uploads
   */
  async upload(file: AttachmentFile): Promise<{ path: string } | PostResult> {
    const { url, headers, pass, signal } = this.#options;
    const { path, name, mediaType } = file;
    const bytes = readAttachment(file);
    if (bytes === null) {
      return { kind: 'refused', reason: `the file ${JSON.stringify(name)} is missing; attach it to a new message` };
    }
    const form = new FormData();
    form.set('file', new Blob([new Uint8Array(bytes)], { type: mediaType }), name);
    const encoded = new Response(form);
    const type = encoded.headers.get('content-type') ?? '';
    void pass('out', { method: 'POST', path: '/upload', body: { file: name, mediaType } });
    try {
      const body = new Uint8Array(await encoded.arrayBuffer());
      const all = { ...headers, 'content-type': type, 'content-length': String(body.byteLength) };
      const within = AbortSignal.any([signal, AbortSignal.timeout(UPLOAD_MS)]);
      const response = await untimedRequest(`${url}/upload`, { method: 'POST', headers: all, body, signal: within });
      const text = await response.text();
      const uploaded = response.ok ? textOf(fieldsOf(parseJson(text)).filePath) : null;
      if (uploaded !== null) return { path: uploaded };
      // Servers before 0.10 have no uploads.
      if (response.status === 404 || response.status === 405) {
        if (isLoopback(url)) return { path };
        const reason = `AgentAPI at ${displayUrl(url)} accepts no files; update it to 0.10 or later, or use the address 127.0.0.1 if it runs on this machine`;
        return { kind: 'refused', reason };
      }
      const { kind, reason } = { reason: 'the response has no path', ...refusalOf(response.status, text, url) };
      return { kind: kind === 'later' ? 'later' : 'refused', reason: `AgentAPI refused the file: ${reason}` };
    } catch (error) {
      // An upload without a response is safe to repeat.
      return { kind: 'later', reason: `AgentAPI can’t be reached at ${displayUrl(url)} (${connectionMessage(error)})` };
    }
  }

  /** @param more fields for the adapter */
  async keys(content: string, more: object): Promise<boolean> {
    const { url, headers, pass } = this.#options;
    const body = { content, type: 'raw' };
    void pass('out', { method: 'POST', path: '/message', body, ...more });
    const json = { ...headers, 'content-type': 'application/json' };
    const request = { method: 'POST' as const, headers: json, body: JSON.stringify(body), signal: this.#timeout() };
    return await untimedRequest(`${url}/message`, request).then(
      async (response) => {
        await response.body?.cancel();
        return response.ok;
      },
      () => false,
    );
  }

  /** HTTP status of the last poll. */
  get lastStatus(): number | null {
    return this.#lastStatus;
  }

  /** Feeds the state of the server to the adapter; one poll at a time. @returns the reason for a failure, or null */
  poll(): Promise<string | null> {
    const polled = this.#polling.then(async () => {
      let messages: Promise<string | null> | null = null;
      const poll = () => {
        messages ??= this.#poll('messages');
        return messages;
      };
      // Reads the status first and passes it last, so that a turn never ends before its last messages.
      return (await this.#poll('status', poll)) ?? poll();
    });
    this.#polling = polled;
    return polled;
  }

  /** The current prompt, read fresh because a stream may lag behind the next key press. */
  async currentPrompt(): Promise<ScreenPrompt | null> {
    if (this.screen !== null) return parseScreenPrompt(await this.#currentScreen());
    const { url, headers } = this.#options;
    const response = await untimedRequest(`${url}/messages`, { headers, signal: this.#timeout() });
    const messages = listOf(fieldsOf(parseJson(await response.text())).messages) as Partial<ApiMessage>[];
    return parseScreenPrompt(textOf(messages.findLast(({ role }) => role === 'agent')?.content) ?? '');
  }

  /** Waits for the prompt to satisfy a condition. @returns true if it did */
  async waitForPrompt(isMet: (prompt: ScreenPrompt | null) => boolean): Promise<boolean> {
    const until = performance.now() + MOVE_MS;
    for (;;) {
      const isLikely = this.screen === null || isMet(parseScreenPrompt(this.screen));
      if (isLikely && isMet(await this.currentPrompt())) return true;
      if (performance.now() > until || this.#options.signal.aborted) return false;
      await pause(CHECK_MS);
    }
  }

  /** Reads the current screen, the first event of every screen stream. @throws Error if it is missing */
  async #currentScreen(): Promise<string> {
    const { url, headers } = this.#options;
    const seen = new AbortController();
    const signal = AbortSignal.any([this.#timeout(), seen.signal]);
    const accept = { ...headers, accept: 'text/event-stream' };
    const response = await untimedRequest(`${url}/internal/screen`, { headers: accept, signal });
    let screen: string | null = null;
    const onEvent = ({ data }: { data: string }) => {
      const parts = fieldsOf(parseJson(data)).screen;
      if (typeof parts !== 'string' || screen !== null) return;
      screen = parts;
      seen.abort();
    };
    await readEvents(response.body ?? new ReadableStream(), { onEvent }).catch(() => undefined);
    if (screen === null) throw new Error('AgentAPI does not show its screen');
    return screen;
  }

  /** @param beforePass runs before the response is passed to the adapter */
  async #poll(resource: 'status' | 'messages', beforePass?: () => Promise<unknown>): Promise<string | null> {
    const { url, headers, pass } = this.#options;
    const { steps } = this;
    try {
      const response = await untimedRequest(`${url}/${resource}`, { headers, signal: this.#timeout() });
      const text = await response.text();
      this.#lastStatus = response.status;
      const body = parseJson(text) ?? truncateText(text, QUOTED);
      await beforePass?.();
      if (steps !== this.steps) return null;
      await pass('in', { answer: resource, status: response.status, body });
      if (response.ok) return null;
      const refusal = refusalOf(response.status, text, url);
      return refusal.kind === 'accepted' ? null : refusal.reason;
    } catch (error) {
      return connectionMessage(error);
    }
  }

  #timeout(): AbortSignal {
    return AbortSignal.any([this.#options.signal, AbortSignal.timeout(REQUEST_MS)]);
  }
}

/** A 500 has three meanings; its text distinguishes them. @see coder/agentapi 0.12.1, lib/screentracker */
function refusalOf(status: number, text: string, url: string): PostResult {
  const { title, detail, errors } = fieldsOf(parseJson(text));
  const causes = listOf(errors).flatMap((one) => textOf(fieldsOf(one).message) ?? []);
  const parts = [textOf(detail) ?? textOf(title) ?? truncateText(text.trim(), QUOTED), ...causes].filter(
    (one) => one !== '',
  );
  const words = truncateText(parts.join(': '), QUOTED);
  if (status === 400 && /host/i.test(words)) {
    const { host } = new URL(url);
    return {
      kind: 'refused',
      reason: `AgentAPI rejects the host name ${host}; start it with --allowed-hosts ${host}`,
    };
  }
  if (status === 500 && /waiting for user input|not stable/i.test(words))
    return { kind: 'later', reason: 'the agent is working' };
  if (status === 500 && /must not be empty/i.test(words))
    return { kind: 'refused', reason: 'AgentAPI accepts no empty messages' };
  if (status === 500 && /must be trimmed/i.test(words)) {
    return {
      kind: 'refused',
      reason: 'AgentAPI accepts no message with leading or trailing blanks',
    };
  }
  if (status === 429 || status === 502 || status === 503)
    return { kind: 'later', reason: `AgentAPI answers ${status}` };
  return { kind: 'refused', reason: `AgentAPI answered ${status}${words === '' ? '' : `: ${words}`}` };
}
