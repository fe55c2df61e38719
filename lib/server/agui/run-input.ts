import { AppError } from '@interlude/protocol/errors';
import { contentText } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { measureJson } from '@interlude/protocol/json-measure';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { digestOf } from '@interlude/protocol/request-digest';
import { mayHaveHalves, wellFormed } from '@interlude/protocol/well-formed';
import { Yielder } from '@/db/yield-to-loop';
import { decodeStart, parseJsonText, tooDeep } from '@/lib/server/ingest/parse-request';
import { ClientParts } from './client-parts';
import type { Dialect } from './strict-event';

/** How long a stream that follows stays open, unless it says otherwise, and at most. */
export const FOLLOW_MS = 10 * 60_000;
export const MAX_FOLLOW_MS = 60 * 60_000;
/** Most values of an input, counted as a record's are: a client sends its whole history, of some ten thousand messages. */
const MAX_INPUT_VALUES = 100_000;
/** Most messages and answers that one input may send on. */
const MAX_SENT = 50;

export interface SentMessage {
  /** What it is called in the session, whoever sends it again. */
  clientId: string;
  text: string;
}

/** An answer to an interrupt. */
export interface Resume {
  interruptId: string;
  status: 'resolved' | 'cancelled';
  payload: unknown;
}

/** What a client asks for. @see `@ag-ui/core` 1.0.0, RunAgentInput */
export interface RunInput {
  threadId: string;
  runId: string;
  dialect: Dialect;
  /** The people's messages at the end of its history: what stands before them has been answered or replaced. */
  sent: SentMessage[];
  resume: Resume[];
  /** What it has of the session. */
  parts: ClientParts;
  /** `forwardedProps.interlude.sessionId` */
  sessionId: string | null;
  /** `forwardedProps.interlude.connect` */
  connects: boolean;
  /** `forwardedProps.interlude.follow`; null if it is not said, 0 for false. */
  followMs: number | null;
}

/**
 * Others get their turns in between, because a client sends all of its history.
 * @throws AppError `malformed`, `invalid_argument`
 */
export async function readRunInput(bytes: Uint8Array): Promise<RunInput> {
  if (bytes.byteLength === 0) throw invalid('The body is empty. Send a RunAgentInput, as an AG-UI client does.');
  const pace = new Yielder();
  const { values, tooDeepAt } = measureJson(bytes);
  await pace.rest();
  if (tooDeepAt !== null) throw tooDeep(tooDeepAt);
  if (values > MAX_INPUT_VALUES) throw invalid(`The input holds more than ${MAX_INPUT_VALUES} values.`);
  const text = decodeStart(bytes);
  await pace.rest();
  const parsed = parseJsonText(text);
  await pace.rest();
  const input = mayHaveHalves(text) ? wellFormed(parsed) : parsed;
  await pace.rest();
  if (!isObject(input)) throw invalid('The body is not a RunAgentInput, as an AG-UI client sends it.');
  const messages = listOf(input.messages).filter(isObject);
  const asked = fieldsOf(fieldsOf(input.forwardedProps).interlude);
  return {
    threadId: shortIdOf(input, 'threadId'),
    runId: shortIdOf(input, 'runId'),
    dialect: input.protocolVersion === undefined ? '0.0.59' : '1.0',
    sent: sentAtEnd(messages),
    resume: resumesIn(input.resume),
    parts: partsOf(messages),
    sessionId: textOf(asked.sessionId),
    connects: asked.connect === true,
    followMs: followOf(asked.follow),
  };
}

function sentAtEnd(messages: readonly Fields[]): SentMessage[] {
  const last = messages.findLastIndex(({ role }) => role !== 'user');
  const sent = messages.slice(last + 1);
  if (sent.length > MAX_SENT) throw invalid(`The input ends with more than ${MAX_SENT} messages. Send fewer at once.`);
  return sent.map((message) => {
    const text = contentText(message.content);
    if (text.trim() === '')
      throw invalid('A message at the end of the input has no text, and only text can be sent on.');
    return { clientId: clientIdOf(idOf(message, 'id')), text };
  });
}

/** By which prefix what came through this route is known in a session. */
const PREFIX = 'agui:';

/** The same message, sent again by a client that lost its answer, is the same in its session. */
export function clientIdOf(messageId: string): string {
  const id = `${PREFIX}${messageId}`;
  return id.length <= MAX_ID_LENGTH ? id : `${PREFIX}#${digestOf(messageId)}`;
}

/** What an AG-UI client calls the message; null if none sent it. */
export function messageIdOf(clientId: string | null | undefined): string | null {
  return clientId?.startsWith(PREFIX) && !clientId.startsWith(`${PREFIX}#`) ? clientId.slice(PREFIX.length) : null;
}

function resumesIn(value: unknown): Resume[] {
  const entries = listOf(value);
  if (entries.length > MAX_SENT) throw invalid(`The input answers more than ${MAX_SENT} interrupts at once.`);
  return entries.map((entry) => {
    const { interruptId, status, payload } = fieldsOf(entry);
    if (textOf(interruptId) === null || (status !== 'resolved' && status !== 'cancelled')) {
      throw invalid('Each entry of resume needs an interruptId, and the status "resolved" or "cancelled".');
    }
    return { interruptId: String(interruptId), status, payload };
  });
}

/** A log that is read again from the beginning of a turn tells what the client has from its beginning: `told` is 0. */
function partsOf(messages: readonly Fields[]): ClientParts {
  const parts = new ClientParts();
  for (const message of messages) {
    const id = textOf(message.id);
    if (id === null) continue;
    if (message.role === 'tool') {
      const call = textOf(message.toolCallId);
      if (call !== null) parts.knowResult(call);
    } else if (message.role !== 'activity') {
      parts.know(message.role === 'reasoning' ? 'thought' : 'text', id, contentText(message.content).length, 0);
    }
    for (const call of listOf(message.toolCalls).map(fieldsOf)) {
      const callId = textOf(call.id);
      const args = textOf(fieldsOf(call.function).arguments) ?? '';
      if (callId !== null) parts.know('call', callId, args.length, 0);
    }
  }
  return parts;
}

/** `true`, or `{"seconds": …}`. */
function followOf(value: unknown): number | null {
  if (value === undefined || value === null) return null;
  if (value === false) return 0;
  if (value === true) return FOLLOW_MS;
  const seconds = numberOf(fieldsOf(value).seconds);
  if (seconds === null || seconds < 0) {
    throw invalid('forwardedProps.interlude.follow is true, false or {"seconds": …}, a number from 0 to 3600.');
  }
  return Math.min(seconds * 1_000, MAX_FOLLOW_MS);
}

function idOf(fields: Fields, name: string): string {
  const id = textOf(fields[name]);
  if (id === null) throw invalid(`${name} is missing: it is a text, as an AG-UI client sends it.`);
  return id;
}

/** What each run repeats to its client. */
function shortIdOf(fields: Fields, name: string): string {
  const id = idOf(fields, name);
  if (id.length > MAX_ID_LENGTH) throw invalid(`${name} is longer than ${MAX_ID_LENGTH} characters.`);
  return id;
}

function invalid(message: string): AppError {
  return new AppError('invalid_argument', message);
}
