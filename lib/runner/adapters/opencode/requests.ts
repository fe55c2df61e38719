import type { RequestOpenedValue, RequestOption, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import type { SessionWriter } from '../writer/session-writer';
import { displayInput } from '../writer/size-limits';
import { idOf } from './native-event';

const MAX_ASKS = 500;

export type RequestKind = 'permission' | 'question';

/** By the answer given. */
const OUTCOMES: Record<string, RequestResolvedValue['outcome']> = {
  once: 'allowed',
  always: 'allowed',
  reject: 'denied',
  answers: 'answered',
};

/** Open requests of a root session and its subagents. */
export class OpenRequests {
  readonly #writer: SessionWriter;
  readonly #open = new Map<string, { kind: RequestKind; session: string; callId: string | null }>();
  /** Requests opened by an earlier process. */
  readonly #before = new Map<string, RequestKind>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  get hasOpen(): boolean {
    return this.#open.size > 0 || this.#before.size > 0;
  }

  /** @param about the call's log id and the asking subagent */
  opened(
    kind: RequestKind,
    request: Fields,
    about: { toolUseId: string | null; by: string | null; isMain: boolean },
  ): void {
    const id = idOf(request.id);
    const session = idOf(request.sessionID);
    if (id === null || session === null || this.#open.has(id)) return;
    const callId = idOf(fieldsOf(request.tool).callID);
    setBounded(this.#open, id, { kind, session, callId }, MAX_ASKS);
    this.#before.delete(id);
    const named = { id, callId: about.toolUseId, by: about.by };
    const value = kind === 'permission' ? permissionOf(request, named) : questionOf(request, named);
    // A subagent's request outlives the turn.
    if (about.isMain) this.#writer.requested(value);
    else this.#writer.requested(value, true);
  }

  /** @param answer `once`, `always` or `reject`; `answers` for a question */
  answered(id: string, answer: string | null): void {
    const outcome = answer !== null && Object.hasOwn(OUTCOMES, answer) ? OUTCOMES[answer] : undefined;
    this.#end(id, outcome ?? 'unknown');
  }

  /** Handles the end of a call without a known answer. */
  callEnded(session: string, callId: string | null): void {
    if (callId !== null) this.#drop((ask) => ask.session === session && ask.callId === callId, 'unknown');
  }

  /** Handles the end of the asking session. */
  sessionGone(session: string): void {
    this.#drop((ask) => ask.session === session, 'cancelled');
  }

  /** Reconciles with the server's list: missing requests were answered elsewhere. */
  listed(kind: RequestKind, list: unknown): void {
    const ids = new Set(listOf(list).map((one) => idOf(fieldsOf(one).id)));
    for (const [id, ask] of this.#open) if (ask.kind === kind && !ids.has(id)) this.#end(id, 'unknown');
    for (const [id, of] of this.#before) if (of === kind && !ids.has(id)) this.#end(id, 'unknown');
  }

  /** Restores requests of an earlier process; the server will list those still open. */
  restore(ids: readonly string[]): void {
    for (const id of ids) {
      const kind = id.startsWith('que') ? 'question' : 'permission';
      this.#before.set(id, kind);
      this.#writer.requested({ request_id: id, kind }, true);
    }
  }

  #drop(isMeant: (ask: { session: string; callId: string | null }) => boolean, outcome: 'unknown' | 'cancelled'): void {
    for (const [id, ask] of this.#open) if (isMeant(ask)) this.#end(id, outcome);
  }

  #end(id: string, outcome: RequestResolvedValue['outcome']): void {
    this.#open.delete(id);
    this.#before.delete(id);
    this.#writer.resolved(id, outcome);
  }
}

/** Values of `reply` in `POST /permission/:id/reply`. */
type PermissionReply = 'once' | 'always' | 'reject';

const MAX_TITLE = 500;

/** @param request from `permission.asked` or `GET /permission` */
function permissionOf(request: Fields, about: { id: string; callId: string | null; by: string | null }) {
  const permission = truncateText(textOf(request.permission) ?? textOf(request.type) ?? 'permission', 100);
  const { command, title, filepath, description } = fieldsOf(request.metadata);
  const subject =
    [command, title, filepath, description].map(textOf).find(Boolean) ?? textsOf(request.patterns).join(', ');
  return {
    request_id: about.id,
    kind: 'permission',
    ...(about.callId === null ? {} : { tool_use_id: about.callId }),
    tool_name: permission,
    title: titleOf(`${permission}: ${subject}`, about.by),
    ...displayInput(
      { patterns: request.patterns ?? [], always: request.always ?? [], metadata: request.metadata ?? {} },
      optionsOf(textsOf(request.always)),
    ),
  } satisfies RequestOpenedValue;
}

function optionsOf(always: string[]): RequestOption[] {
  const patterns = always.length === 0 ? '' : ` (${always.join(', ')})`;
  return [
    { id: 'once', label: 'Allow once', kind: 'allow' },
    { id: 'always', label: truncateText(`Always allow${patterns}`, 200), kind: 'allow', isLasting: true },
    { id: 'reject', label: 'Reject; stops the turn unless you add an instruction', kind: 'deny' },
  ] satisfies (RequestOption & { id: PermissionReply })[];
}

/** @param request from `question.asked` or `GET /question` */
function questionOf(request: Fields, about: { id: string; callId: string | null; by: string | null }) {
  const questions = listOf(request.questions).map((one) => {
    const { multiple, ...rest } = fieldsOf(one);
    return { ...rest, multiSelect: multiple === true };
  });
  const first = textOf(fieldsOf(questions[0]).question) ?? 'The agent asks';
  return {
    request_id: about.id,
    kind: 'question',
    ...(about.callId === null ? {} : { tool_use_id: about.callId }),
    tool_name: 'question',
    title: titleOf(first, about.by),
    input: displayInput({ questions }, []).input,
  } satisfies RequestOpenedValue;
}

function titleOf(text: string, by: string | null): string {
  const whose = by === null ? '' : ` (asked by the subagent “${truncateText(by, 100)}”)`;
  return truncateText(text, MAX_TITLE) + whose;
}
