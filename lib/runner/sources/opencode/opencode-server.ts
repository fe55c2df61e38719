import { isTextType } from '@interlude/protocol/attachments';
import { fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { partOfMessage } from '../../adapters/opencode/user-message';
import { type AttachmentFile, MAX_TEXT_BYTES, readAttachment, withFileList } from '../../host/attachment-store';
import type { InFlightMessage } from '../../host/message-delivery';
import type { RequestAnswer } from '../../host/pending-requests';
import { withDeadline } from '../../with-deadline';

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
export function errorText({ status, body }: Answer): string {
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

/** A request to OpenCode that gives an answer. */
interface AnswerRequest {
  path: string;
  body?: object;
}

/** @returns what gives the answer to OpenCode, or why it can't be given */
export function answerRequest(askedId: string, input: unknown, answer: RequestAnswer): AnswerRequest | string {
  const requestId = encodeURIComponent(askedId);
  if (answer.kind === 'option') {
    const { optionId, message } = answer;
    const said = message === undefined ? {} : { message };
    return { path: `/permission/${requestId}/reply`, body: { reply: optionId, ...said } };
  }
  if (answer.kind === 'permission') {
    return answer.isAllowed ? 'this is a question; answer it' : { path: `/question/${requestId}/reject` };
  }
  const answers: string[][] = [];
  for (const asked of listOf(fieldsOf(input).questions)) {
    const { question, options, custom } = fieldsOf(asked);
    const text = textOf(question) ?? '';
    const given = Object.hasOwn(answer.answers, text) ? answer.answers[text] : undefined;
    const chosen = given === undefined ? [] : [given].flat();
    const labels = listOf(options).map((option) => fieldsOf(option).label);
    const other = chosen.find((one) => !labels.includes(one));
    if (custom === false && other !== undefined) return `"${text}" takes only what it offers`;
    answers.push(chosen);
  }
  return { path: `/question/${requestId}/reply`, body: { answers } };
}

/**
 * A message as the parts of a prompt. Bytes go along, since the server may run on another machine; text does as a part
 * that is `synthetic`: no words of a person's. A longer one is named, and read by the agent's own tools. Files are read in
 * this step: what is said behind must not overtake it.
 *
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

/** @returns why an OpenCode on another machine can't be given them, or null */
export function remoteFileRefusal(files: readonly AttachmentFile[]): string | null {
  const name = files.find(isPathOnly)?.name;
  if (name === undefined) return null;
  const most = `${MAX_TEXT_BYTES / 1024} KiB`;
  return `OpenCode on another machine can’t be given a text of more than ${most} (${JSON.stringify(name)}); attach a shorter part of it, or name the server as 127.0.0.1 if it runs here`;
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
