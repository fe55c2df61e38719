import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { AnswerQuestion, DecidePermission } from '@interlude/protocol/commands';
import { AppError } from '@interlude/protocol/errors';
import { CUSTOM, customName, customValue, pickId } from '@interlude/protocol/event-fields';
import { fieldsOf, isObject, listOf, textOf } from '@interlude/protocol/fields';
import { readInterlude } from '@interlude/protocol/interlude-metadata';
import { inputsOf } from '@interlude/protocol/lifecycle/event-inputs';
import { Entities } from '@interlude/protocol/lifecycle/grammar';
import { MAX_REASON_LENGTH } from '@interlude/protocol/limits';
import type { EventEntry } from '@interlude/protocol/projections/event-entry';
import { requestItem } from '@interlude/protocol/projections/request-items';
import type { RequestItem } from '@interlude/protocol/read-models';
import type { Resume } from './run-input';
import type { Interrupt } from './strict-event';

/** A request of the agent that waits for a person. */
export interface Asked
  extends Pick<
    RequestItem,
    'id' | 'title' | 'toolName' | 'toolCallId' | 'input' | 'digest' | 'openedPosition' | 'expiresAt'
  > {
  kind: RequestItem['requestKind'];
  options: readonly RequestOption[];
}

/** Most requests that a client is asked at once: further ones are asked once others are answered. */
export const MOST_ASKED = 20;
const MOST = { mostOpen: MOST_ASKED, mostEnded: 0 };

/** The requests that the agent waits for, and which of them this client has answered. */
export class Asks {
  readonly #open = new Entities<'request', Asked & { isAnswered: boolean }>('request', MOST);

  constructor(pending: readonly Asked[], answered: readonly string[]) {
    for (const asked of pending)
      this.#open.take(asked.id, 'ask', { ...asked, isAnswered: answered.includes(asked.id) });
  }

  interrupts(): Interrupt[] {
    return this.#open.entries().flatMap(([, asked]) => (asked.isAnswered ? [] : [interruptOf(asked)]));
  }

  /** @returns whether something is asked that was not before, or an answer could not be given */
  take(entry: EventEntry): boolean {
    const { event } = entry;
    if (customName(event) === CUSTOM.commandFailed) {
      const asked = this.#open.about(pickId(customValue(event), 'request_id', 'requestId') ?? '');
      if (asked?.isAnswered !== true) return false;
      asked.isAnswered = false;
      return true;
    }
    const [said] = inputsOf(event);
    if (said?.kind !== 'request') return false;
    const { id, input } = said;
    if (input !== 'ask') {
      this.#open.take(id, input);
      return false;
    }
    const known = this.#open.about(id);
    const { replaces } = readInterlude(event);
    if (replaces !== undefined) this.#open.take(replaces, 'cut');
    if (known === undefined && this.#open.crowded !== null) return false;
    const asked = askedIn(requestItem(id, entry));
    // A repeated request was shown to this client, or answered by it, before.
    const isAgain = known?.digest === asked.digest;
    this.#open.take(id, 'ask', { ...asked, isAnswered: isAgain && known?.isAnswered === true });
    return !isAgain;
  }

  /** The turn or process that asked has ended. */
  cut(): void {
    for (const id of this.#open.open) this.#open.take(id, 'cut');
  }
}

export function askedIn({ requestKind: kind, options = [], ...item }: RequestItem): Asked {
  return { ...item, kind, options };
}

/** How much of the digest an interrupt's id carries. */
const MARK_LENGTH = 16;

/**
 * The id says which opening of the request is meant, so that an answer never reaches another with the same id: what a
 * person saw is what is answered.
 */
export function interruptId({ id, digest }: Pick<Asked, 'id' | 'digest'>): string {
  return digest === null ? id : `${id}@${digest.slice(0, MARK_LENGTH)}`;
}

/** @returns `mark` is the beginning of its digest; null if the id does not say */
export function requestMeant(interrupt: string): { requestId: string; mark: string | null } {
  const [, requestId, mark] = /^(.+)@([0-9a-f]{16})$/s.exec(interrupt) ?? [];
  return requestId === undefined || mark === undefined ? { requestId: interrupt, mark: null } : { requestId, mark };
}

export function interruptOf(asked: Asked): Interrupt {
  const { kind, title, toolName, toolCallId, input, options, digest, expiresAt } = asked;
  return {
    id: interruptId(asked),
    reason: kind === 'permission' ? 'tool_call' : 'input_required',
    message: title,
    ...(toolCallId === null ? {} : { toolCallId }),
    responseSchema: kind === 'permission' ? permissionSchema(options) : questionSchema(asked),
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    metadata: { interlude: { requestId: asked.id, kind, toolName, input: input ?? null, options, digest } },
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

function questionSchema(asked: Asked): Record<string, unknown> {
  const answer = { anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }] };
  const properties = Object.fromEntries(questionsOf(asked).map((question) => [question, answer]));
  const answers = { type: 'object', properties, additionalProperties: answer };
  return { type: 'object', properties: { answers }, required: ['answers'] };
}

function questionsOf({ input, title }: Asked): string[] {
  const questions = listOf(fieldsOf(input).questions).flatMap((one) => textOf(fieldsOf(one).question) ?? []);
  return questions.length === 0 ? [title] : questions;
}

/**
 * What a client's answer means to the agent. `approved` or `behavior` decides a permission, `optionId` names one of its
 * options; a question takes `answers`, or one text for its first question. `cancelled` denies a permission.
 *
 * @returns null for a question that is cancelled, which has no answer
 * @throws AppError `invalid_argument` that says what the payload must be
 */
export function answerIn(asked: Asked, { status, payload }: Resume): DecidePermission | AnswerQuestion | null {
  const digest = asked.digest;
  if (asked.kind === 'question') return status === 'cancelled' ? null : { answers: answersIn(asked, payload), digest };
  if (status === 'cancelled') return { behavior: 'deny', message: 'The AG-UI client cancelled it.', digest };
  const said = fieldsOf(payload);
  const message = textOf(said.message)?.slice(0, MAX_REASON_LENGTH);
  const option = asked.options.find(({ id }) => id === said.optionId);
  const behavior = option?.kind ?? behaviorIn(payload);
  if (behavior === null) {
    throw new AppError(
      'invalid_argument',
      `The payload for ${JSON.stringify(interruptId(asked))} decides nothing. Send {"approved": true} or {"approved": false}${asked.options.length === 0 ? '' : ', or the optionId of one of its options'}.`,
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
  const said = typeof payload === 'boolean' ? payload : approved;
  return typeof said === 'boolean' ? (said ? 'allow' : 'deny') : null;
}

function answersIn(asked: Asked, payload: unknown): AnswerQuestion['answers'] {
  const [first = asked.title] = questionsOf(asked);
  const text = textOf(payload) ?? textOf(fieldsOf(payload).answer);
  if (text !== null) return { [first]: text };
  const given = fieldsOf(payload);
  const answers = isObject(given.answers) ? given.answers : given;
  const said = Object.entries(answers).filter(
    (entry): entry is [string, string | string[]] =>
      typeof entry[1] === 'string' || (Array.isArray(entry[1]) && entry[1].every((one) => typeof one === 'string')),
  );
  if (said.length > 0) return Object.fromEntries(said);
  throw new AppError(
    'invalid_argument',
    `The payload for ${JSON.stringify(interruptId(asked))} answers nothing. Send {"answers": {${JSON.stringify(first)}: "…"}}.`,
  );
}
