import { abortableFetch } from '@interlude/protocol/abortable-fetch';
import { isTextType } from '@interlude/protocol/attachments';
import { fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { partOfMessage } from '../../adapters/opencode/native-event';
import { type AttachmentFile, MAX_TEXT_BYTES, withFileList } from '../../host/attachment-store';
import type { InFlightMessage } from '../../host/message-delivery';
import type { RequestAnswer } from '../../host/pending-requests';
import { readAttachment } from '../../host/read-attachment';
import { withDeadline } from '../../host/server-request';

export interface ServerAddress {
  url: string;
  user: string;
  /** Null if the server requires no password. */
  password: string | null;
}

export interface Answer {
  status: number;
  /** JSON, or text that is not JSON. */
  body: unknown;
}

const RESPOND_WITHIN_MS = 10_000;
/** Limit of a response, which must fit into memory. */
const MAX_RESPONSE_BYTES = 256 * 1024 * 1024;

/**
 * HTTP client of an OpenCode server.
 *
 * Failure: every request has a time limit, because a starting server accepts connections without answering. Redirects
 * are not followed, because the password belongs to this address only.
 * @see opencode-ai 1.18.33, `GET /doc`
 */
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

  /** @throws Error without a complete response in time */
  async request(method: 'GET' | 'POST', path: string, body?: unknown, withinMs = RESPOND_WITHIN_MS): Promise<Answer> {
    return await withDeadline(withinMs, this.#signal, async (signal) => {
      const json = body === undefined ? {} : { body: JSON.stringify(body) };
      const headers = { ...this.#headers, 'content-type': 'application/json' };
      const response = await abortableFetch(this.#url + path, { method, headers, ...json, signal, redirect: 'manual' });
      const text = await readText(response);
      try {
        return { status: response.status, body: text === '' ? '' : JSON.parse(text) };
      } catch {
        return { status: response.status, body: text };
      }
    });
  }

  /** Events of all directories, from now on. */
  async events(signal: AbortSignal): Promise<Response> {
    const headers = { ...this.#headers, accept: 'text/event-stream' };
    return await abortableFetch(`${this.#url}/global/event`, { headers, signal, redirect: 'manual' });
  }
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  const parts: string[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as unknown as AsyncIterable<Uint8Array>) {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) throw new Error(`a response exceeds ${MAX_RESPONSE_BYTES} bytes`);
    parts.push(decoder.decode(chunk, { stream: true }));
  }
  return parts.join('') + decoder.decode();
}

/** Error message of a response. */
export function errorText({ status, body }: Answer): string {
  const { message, data } = isObject(body) ? body : {};
  const reason = isObject(data) && typeof data.message === 'string' ? data.message : message;
  return typeof reason === 'string' && reason !== ''
    ? `OpenCode answered ${status}: ${reason}`
    : `OpenCode answered ${status}`;
}

/** @param directory selects the server instance; each knows only the sessions of its directory */
export function inDirectory(path: string, directory: string | null): string {
  return directory === null ? path : `${path}?directory=${encodeURIComponent(directory)}`;
}

interface AnswerRequest {
  path: string;
  body?: object;
}

/** @returns the request that delivers the answer, or the reason why there is none */
export function answerRequest(id: string, input: unknown, answer: RequestAnswer): AnswerRequest | string {
  const requestId = encodeURIComponent(id);
  if (answer.kind === 'option') {
    const { optionId, message } = answer;
    const note = message === undefined ? {} : { message };
    return { path: `/permission/${requestId}/reply`, body: { reply: optionId, ...note } };
  }
  if (answer.kind === 'permission') {
    return answer.isAllowed ? 'this is a question; answer it instead' : { path: `/question/${requestId}/reject` };
  }
  const answers: string[][] = [];
  for (const entry of listOf(fieldsOf(input).questions)) {
    const { question, options, custom } = fieldsOf(entry);
    const text = textOf(question) ?? '';
    const values = Object.hasOwn(answer.answers, text) ? answer.answers[text] : undefined;
    const chosen = values === undefined ? [] : [values].flat();
    const labels = listOf(options).map((option) => fieldsOf(option).label);
    const other = chosen.find((one) => !labels.includes(one));
    if (custom === false && other !== undefined) return `"${text}" accepts only the offered answers`;
    answers.push(chosen);
  }
  return { path: `/question/${requestId}/reply`, body: { answers } };
}

/**
 * Converts a message to prompt parts. Bytes are included, since the server may run elsewhere; texts become `synthetic`
 * parts. Longer texts are passed by path. Reads files synchronously, so that later messages can't overtake it.
 * @see OpenCode 1.x, TextPartInput and FilePartInput
 */
export function promptParts({ messageId, text, files = [] }: InFlightMessage): object[] {
  const parts: object[] = [];
  const [named, lost]: [AttachmentFile[], AttachmentFile[]] = [[], []];
  for (const file of files) {
    const bytes = readAttachment(file);
    if (bytes === null) lost.push(file);
    else if (isPathOnly(file)) named.push(file);
    else parts.push(partOf(file, bytes));
  }
  return [partOfMessage(messageId, withFileList(text, named, lost)), ...parts];
}

/** @returns the reason why a remote OpenCode can't get these files, or null */
export function remoteFileRefusal(files: readonly AttachmentFile[]): string | null {
  const name = files.find(isPathOnly)?.name;
  if (name === undefined) return null;
  const most = `${MAX_TEXT_BYTES / 1024} KiB`;
  return `a remote OpenCode accepts no text over ${most} (${JSON.stringify(name)}); attach a shorter part, or use the address 127.0.0.1 if it runs on this machine`;
}

function isPathOnly({ mediaType, bytes }: AttachmentFile): boolean {
  return isTextType(mediaType) && bytes > MAX_TEXT_BYTES;
}

function partOf({ name, mediaType }: AttachmentFile, bytes: Buffer): object {
  if (!isTextType(mediaType)) {
    const url = `data:${mediaType};base64,${bytes.toString('base64')}`;
    return { type: 'file', mime: mediaType, filename: name, url };
  }
  const text = `The file ${JSON.stringify(name)}, attached to this message:\n\n${bytes.toString('utf8')}`;
  return { type: 'text', text, synthetic: true };
}
