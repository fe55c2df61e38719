import { AppError } from '@interlude/protocol/errors';
import { contentText } from '@interlude/protocol/event-fields';
import { type Fields, fieldsOf, isObject, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { mayBeIllFormed, measureJson, wellFormed } from '@interlude/protocol/json';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { Yielder } from '@/db/yield-to-loop';
import { decodeStart, parseJsonText, tooDeep } from '@/lib/server/ingest/parse-request';
import type { Dialect } from './client-events';
import { ClientParts, clientIdOf } from './client-parts';

/** Default and maximum time to follow a session. */
export const FOLLOW_MS = 10 * 60_000;
const MAX_FOLLOW_MS = 60 * 60_000;
/** Maximum JSON values of an input. A client sends its whole history, some ten thousand messages. */
const MAX_INPUT_VALUES = 100_000;
/** Maximum new messages, and maximum answers, of one input. */
const MAX_SENT = 50;

interface SentMessage {
  clientId: string;
  text: string;
}

export interface Resume {
  interruptId: string;
  status: 'resolved' | 'cancelled';
  payload: unknown;
}

/** @see `@ag-ui/core` 1.0.0, RunAgentInput */
export interface RunInput {
  threadId: string;
  runId: string;
  dialect: Dialect;
  /** The user messages at the end of the history; earlier ones have been answered or replaced. */
  sent: SentMessage[];
  resume: Resume[];
  parts: ClientParts;
  /** `forwardedProps.interlude.sessionId` */
  sessionId: string | null;
  /** `forwardedProps.interlude.connect` */
  connects: boolean;
  /** `forwardedProps.interlude.follow`; null if absent, 0 for false. */
  followMs: number | null;
}

/**
 * Parses an input. Yields to the event loop, because a client sends its whole history.
 * @throws AppError `malformed`, `invalid_argument`
 */
export async function readRunInput(bytes: Uint8Array): Promise<RunInput> {
  if (bytes.byteLength === 0) throw invalid('The body is empty. Send a RunAgentInput, as an AG-UI client does.');
  const yielder = new Yielder();
  const { values, tooDeepAt } = measureJson(bytes);
  await yielder.yieldIfDue();
  if (tooDeepAt !== null) throw tooDeep(tooDeepAt);
  if (values > MAX_INPUT_VALUES) throw invalid(`The input may have at most ${MAX_INPUT_VALUES} values. Shorten it.`);
  const text = decodeStart(bytes);
  await yielder.yieldIfDue();
  const parsed = parseJsonText(text);
  await yielder.yieldIfDue();
  const input = mayBeIllFormed(text) ? wellFormed(parsed) : parsed;
  await yielder.yieldIfDue();
  if (!isObject(input)) throw invalid('The body is not a RunAgentInput. Send one as AG-UI clients do.');
  const messages = listOf(input.messages).filter(isObject);
  const options = fieldsOf(fieldsOf(input.forwardedProps).interlude);
  return {
    threadId: shortIdOf(input, 'threadId'),
    runId: shortIdOf(input, 'runId'),
    dialect: input.protocolVersion === undefined ? '0.0.59' : '1.0',
    sent: sentAtEnd(messages),
    resume: resumesIn(input.resume),
    parts: partsOf(messages),
    sessionId: textOf(options.sessionId),
    connects: options.connect === true,
    followMs: followOf(options.follow),
  };
}

function sentAtEnd(messages: readonly Fields[]): SentMessage[] {
  const last = messages.findLastIndex(({ role }) => role !== 'user');
  const sent = messages.slice(last + 1);
  if (sent.length > MAX_SENT) throw invalid(`The input ends with more than ${MAX_SENT} user messages. Send fewer.`);
  return sent.map((message) => {
    const text = contentText(message.content);
    if (text.trim() === '')
      throw invalid('The last messages of the input must contain text: nothing else can be sent.');
    return { clientId: clientIdOf(idOf(message, 'id')), text };
  });
}

function resumesIn(value: unknown): Resume[] {
  const entries = listOf(value);
  if (entries.length > MAX_SENT) throw invalid(`The input answers more than ${MAX_SENT} interrupts. Send fewer.`);
  return entries.map((entry) => {
    const { interruptId, status, payload } = fieldsOf(entry);
    if (textOf(interruptId) === null || (status !== 'resolved' && status !== 'cancelled')) {
      throw invalid('Each entry of resume needs an interruptId, and the status "resolved" or "cancelled".');
    }
    return { interruptId: String(interruptId), status, payload };
  });
}

/** The log is read from the start of a turn, so `logLength` is 0. */
function partsOf(messages: readonly Fields[]): ClientParts {
  const parts = new ClientParts();
  for (const message of messages) {
    const id = textOf(message.id);
    if (id === null) continue;
    if (message.role === 'tool') {
      const call = textOf(message.toolCallId);
      if (call !== null) parts.addResult(call);
    } else if (message.role !== 'activity') {
      parts.add(message.role === 'reasoning' ? 'thought' : 'text', id, contentText(message.content).length, 0);
    }
    for (const call of listOf(message.toolCalls).map(fieldsOf)) {
      const callId = textOf(call.id);
      const args = textOf(fieldsOf(call.function).arguments) ?? '';
      if (callId !== null) parts.add('call', callId, args.length, 0);
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
    throw invalid('forwardedProps.interlude.follow must be true, false or {"seconds": n} with n from 0 to 3600.');
  }
  return Math.min(seconds * 1_000, MAX_FOLLOW_MS);
}

function idOf(fields: Fields, name: string): string {
  const id = textOf(fields[name]);
  if (id === null) throw invalid(`${name} is missing. Send it as a string.`);
  return id;
}

/** Length is limited, because each run repeats the id. */
function shortIdOf(fields: Fields, name: string): string {
  const id = idOf(fields, name);
  if (id.length > MAX_ID_LENGTH) throw invalid(`${name} may have at most ${MAX_ID_LENGTH} characters. Shorten it.`);
  return id;
}

function invalid(message: string): AppError {
  return new AppError('invalid_argument', message);
}
