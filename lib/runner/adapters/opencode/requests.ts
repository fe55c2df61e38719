import type { RequestOpenedValue, RequestOption, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { cutText } from '@interlude/protocol/cut-text';
import { type Fields, fieldsOf, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { setBounded } from '../bounded-map';
import type { SessionWriter } from '../writer/session-writer';
import { displayInput } from '../writer/size-limits';
import { fittingValue } from './fitting-value';
import { idOf } from './native-event';

const MAX_ASKS = 500;

export type RequestKind = 'permission' | 'question';

/** By the answer that was given. */
const OUTCOMES: Record<string, RequestResolvedValue['outcome']> = {
  once: 'allowed',
  always: 'allowed',
  reject: 'denied',
  answers: 'answered',
};

/** What one root session and its subagents wait for people to say. */
export class OpenRequests {
  readonly #writer: SessionWriter;
  readonly #open = new Map<string, { kind: RequestKind; session: string; callId: string | null }>();
  /** Those that an earlier process has told of. */
  readonly #before = new Map<string, RequestKind>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  get hasOpen(): boolean {
    return this.#open.size > 0 || this.#before.size > 0;
  }

  /**
   * @param about the call it belongs to as the log calls it, and the subagent that asks
   */
  asked(
    kind: RequestKind,
    asked: Fields,
    about: { toolUseId: string | null; by: string | null; isMain: boolean },
  ): void {
    const id = idOf(asked.id);
    const session = idOf(asked.sessionID);
    if (id === null || session === null || this.#open.has(id)) return;
    const callId = idOf(fieldsOf(asked.tool).callID);
    setBounded(this.#open, id, { kind, session, callId }, MAX_ASKS);
    this.#before.delete(id);
    const named = { id, callId: about.toolUseId, by: about.by };
    const value = kind === 'permission' ? permissionOf(asked, named) : questionOf(asked, named);
    // That of a subagent stays open when the turn ends.
    if (about.isMain) this.#writer.requested(value);
    else this.#writer.requested(value, true);
  }

  /** @param answer `once`, `always`, `reject`; `answers` where a question got them */
  answered(id: string, answer: string | null): void {
    const outcome = answer !== null && Object.hasOwn(OUTCOMES, answer) ? OUTCOMES[answer] : undefined;
    this.#end(id, outcome ?? 'unknown');
  }

  /** The call has ended without an answer that was heard of. */
  callEnded(session: string, callId: string | null): void {
    if (callId !== null) this.#drop((ask) => ask.session === session && ask.callId === callId, 'unknown');
  }

  /** What asked is gone. */
  gone(session: string): void {
    this.#drop((ask) => ask.session === session, 'cancelled');
  }

  /** What the server lists is all that is open: the rest has been answered where nobody here heard of it. */
  listed(kind: RequestKind, list: unknown): void {
    const ids = new Set(listOf(list).map((one) => idOf(fieldsOf(one).id)));
    for (const [id, ask] of this.#open) if (ask.kind === kind && !ids.has(id)) this.#end(id, 'unknown');
    for (const [id, of] of this.#before) if (of === kind && !ids.has(id)) this.#end(id, 'unknown');
  }

  /** They were told of, by a process that is gone; what is still open will be listed. */
  toldBefore(ids: readonly string[]): void {
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

/** How a permission can be answered: what `POST /permission/:id/reply` takes as `reply`. */
type PermissionReply = 'once' | 'always' | 'reject';

const MAX_TITLE = 500;

/** @param asked as `permission.asked` and `GET /permission` tell it */
function permissionOf(asked: Fields, about: { id: string; callId: string | null; by: string | null }) {
  const permission = cutText(textOf(asked.permission) ?? textOf(asked.type) ?? 'permission', 100);
  const { command, title, filepath, description } = fieldsOf(asked.metadata);
  const what = [command, title, filepath, description].map(textOf).find(Boolean) ?? textsOf(asked.patterns).join(', ');
  return {
    request_id: about.id,
    kind: 'permission',
    ...(about.callId === null ? {} : { tool_use_id: about.callId }),
    tool_name: permission,
    title: titleOf(`${permission}: ${what}`, about.by),
    ...displayInput(
      { patterns: asked.patterns ?? [], always: asked.always ?? [], metadata: asked.metadata ?? {} },
      optionsOf(textsOf(asked.always)),
    ),
  } satisfies RequestOpenedValue;
}

function optionsOf(always: string[]): RequestOption[] {
  const what = always.length === 0 ? '' : ` (${always.join(', ')})`;
  return [
    { id: 'once', label: 'Allow once', kind: 'allow' },
    { id: 'always', label: cutText(`Always allow${what}`, 200), kind: 'allow', isLasting: true },
    { id: 'reject', label: 'Reject; this stops the turn, unless you say what to do instead', kind: 'deny' },
  ] satisfies (RequestOption & { id: PermissionReply })[];
}

/** @param asked as `question.asked` and `GET /question` tell it */
function questionOf(asked: Fields, about: { id: string; callId: string | null; by: string | null }) {
  const questions = listOf(asked.questions).map((one) => {
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
    input: fittingValue({ questions }),
  } satisfies RequestOpenedValue;
}

function titleOf(text: string, by: string | null): string {
  const whose = by === null ? '' : ` (asked by the subagent “${cutText(by, 100)}”)`;
  return cutText(text, MAX_TITLE) + whose;
}
