import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { AnswerQuestion, DecidePermission } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { CUSTOM, customName, customValue, pickId } from '@interlude/protocol/event-fields';
import { fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import { MAX_REASON_LENGTH } from '@interlude/protocol/limits';
import { requestItem } from '@interlude/protocol/projections/command-items';
import type { EventEntry } from '@interlude/protocol/projections/placement';
import type { RequestItem } from '@interlude/protocol/read-models';
import type { Interrupt } from './client-events';
import type { Resume } from './run-input';

export interface PendingRequest
  extends Pick<
    RequestItem,
    'id' | 'title' | 'toolName' | 'toolCallId' | 'input' | 'digest' | 'openedPosition' | 'expiresAt'
  > {
  kind: RequestItem['requestKind'];
  options: readonly RequestOption[];
}

/** Maximum interrupts at once. Further requests follow when some are answered. */
export const MAX_PENDING = 20;
const MOST = { mostOpen: MAX_PENDING, mostEnded: 0 };

/** The agent's open requests, marking those that this client has answered. */
export class PendingRequests {
  readonly #open = new Entities<'request', PendingRequest & { isAnswered: boolean }>('request', MOST);

  constructor(pending: readonly PendingRequest[], answered: readonly string[]) {
    for (const request of pending)
      this.#open.take(request.id, 'ask', { ...request, isAnswered: answered.includes(request.id) });
  }

  interrupts(): Interrupt[] {
    return this.#open.entries().flatMap(([, request]) => (request.isAnswered ? [] : [interruptOf(request)]));
  }

  /** @returns true for a new or changed request, and for an answer that failed */
  apply(entry: EventEntry): boolean {
    const { event } = entry;
    if (customName(event) === CUSTOM.commandFailed) {
      const request = this.#open.about(pickId(customValue(event), 'request_id', 'requestId') ?? '');
      if (request?.isAnswered !== true) return false;
      request.isAnswered = false;
      return true;
    }
    const [change] = inputsOf(event);
    if (change?.kind !== 'request') return false;
    const { id, input } = change;
    if (input !== 'ask') {
      this.#open.take(id, input);
      return false;
    }
    const known = this.#open.about(id);
    const { replaces } = readInterlude(event);
    if (replaces !== undefined) this.#open.take(replaces, 'cut');
    if (known === undefined && this.#open.crowded !== null) return false;
    const request = pendingRequestOf(requestItem(id, entry));
    // The client already got the repeated request as an interrupt, or answered it.
    const isRepeated = known?.digest === request.digest;
    this.#open.take(id, 'ask', { ...request, isAnswered: isRepeated && known?.isAnswered === true });
    return !isRepeated;
  }

  /** Drops every interrupt: the turn or process that waited has ended. */
  close(): void {
    for (const id of this.#open.open) this.#open.take(id, 'cut');
  }
}

export function pendingRequestOf({ requestKind: kind, options = [], ...item }: RequestItem): PendingRequest {
  return { ...item, kind, options };
}

/** Characters of the digest in an interrupt's id. */
const MARK_LENGTH = 16;

/**
 * Returns the interrupt's id, which identifies one opening of a request, so an answer never reaches another request
 * with the same request id.
 */
export function interruptId({ id, digest }: Pick<PendingRequest, 'id' | 'digest'>): string {
  return digest === null ? id : `${id}@${digest.slice(0, MARK_LENGTH)}`;
}

/** @returns `mark`: the start of the request's digest; null if the id has none */
export function parseInterruptId(interrupt: string): { requestId: string; mark: string | null } {
  const [, requestId, mark] = /^(.+)@([0-9a-f]{16})$/s.exec(interrupt) ?? [];
  return requestId === undefined || mark === undefined ? { requestId: interrupt, mark: null } : { requestId, mark };
}

export function interruptOf(request: PendingRequest): Interrupt {
  const { kind, title, toolName, toolCallId, input, options, digest, expiresAt } = request;
  return {
    id: interruptId(request),
    reason: kind === 'permission' ? 'tool_call' : 'input_required',
    message: title,
    ...(toolCallId === null ? {} : { toolCallId }),
    responseSchema: kind === 'permission' ? permissionSchema(options) : questionSchema(request),
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    metadata: { interlude: { requestId: request.id, kind, toolName, input: input ?? null, options, digest } },
  };
}

function permissionSchema(options: readonly RequestOption[]): Record<string, unknown> {
  const optionId = { type: 'string', enum: options.map(({ id }) => id) };
  return {
    type: 'object',
    properties: {
      approved: { type: 'boolean' },
      message: { type: 'string' },
      ...(options.length === 0 ? {} : { optionId }),
    },
    required: ['approved'],
  };
}

function questionSchema(request: PendingRequest): Record<string, unknown> {
  const answer = { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] };
  const properties = Object.fromEntries(questionsOf(request).map((question) => [question, answer]));
  const answers = { type: 'object', properties, additionalProperties: answer };
  return { type: 'object', properties: { answers }, required: ['answers'] };
}

function questionsOf({ input, title }: PendingRequest): string[] {
  const questions = listOf(fieldsOf(input).questions).flatMap((one) => textOf(fieldsOf(one).question) ?? []);
  return questions.length === 0 ? [title] : questions;
}

/**
 * Reads a client's answer. `approved`, `behavior` or `optionId` decides a permission, and `cancelled` denies it. A question
 * accepts `answers`, or one text for its first question.
 *
 * @returns null for a cancelled question, which has no answer
 * @throws AppError `invalid_argument` with the expected payload
 */
export function parseAnswer(
  request: PendingRequest,
  { status, payload }: Resume,
): DecidePermission | AnswerQuestion | null {
  const digest = request.digest;
  if (request.kind === 'question')
    return status === 'cancelled' ? null : { answers: answersIn(request, payload), digest };
  if (status === 'cancelled') return { behavior: 'deny', message: 'The AG-UI client cancelled it.', digest };
  const fields = fieldsOf(payload);
  const message = textOf(fields.message)?.slice(0, MAX_REASON_LENGTH);
  const option = request.options.find(({ id }) => id === fields.optionId);
  const behavior = option?.kind ?? behaviorIn(payload);
  if (behavior === null) {
    throw new AppError(
      'invalid_argument',
      `The payload for ${JSON.stringify(interruptId(request))} has no decision. Send {"approved": true} or {"approved": false}${request.options.length === 0 ? '' : ', or the optionId of one of its options'}.`,
    );
  }
  return {
    behavior,
    digest,
    ...(message === undefined ? {} : { message }),
    ...(option === undefined ? {} : { optionId: option.id }),
  };
}

function behaviorIn(payload: unknown): 'allow' | 'deny' | null {
  const { approved = payload, behavior } = fieldsOf(payload);
  if (behavior === 'allow' || behavior === 'deny') return behavior;
  const decision = typeof payload === 'boolean' ? payload : approved;
  return typeof decision === 'boolean' ? (decision ? 'allow' : 'deny') : null;
}

function answersIn(request: PendingRequest, payload: unknown): AnswerQuestion['answers'] {
  const [first = request.title] = questionsOf(request);
  const text = textOf(payload) ?? textOf(fieldsOf(payload).answer);
  if (text !== null) return { [first]: text };
  const fields = fieldsOf(payload);
  const answers = isObject(fields.answers) ? fields.answers : fields;
  const valid = Object.entries(answers).filter(
    (entry): entry is [string, string | string[]] =>
      typeof entry[1] === 'string' || (Array.isArray(entry[1]) && entry[1].every((one) => typeof one === 'string')),
  );
  if (valid.length > 0) return Object.fromEntries(valid);
  throw new AppError(
    'invalid_argument',
    `The payload for ${JSON.stringify(interruptId(request))} has no answer. Send {"answers": {${JSON.stringify(first)}: "…"}}.`,
  );
}
