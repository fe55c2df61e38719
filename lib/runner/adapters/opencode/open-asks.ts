import type { RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, listOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import type { SessionWriter } from '../writer/session-writer';
import { idOf } from './native-event';
import { permissionOf, questionOf } from './requests';

const MAX_ASKS = 500;

export type AskKind = 'permission' | 'question';

/** By the answer that was given. */
const OUTCOMES: Record<string, RequestResolvedValue['outcome']> = {
  once: 'allowed',
  always: 'allowed',
  reject: 'denied',
  answers: 'answered',
};

/** What one root session and its subagents wait for people to say. */
export class OpenAsks {
  readonly #writer: SessionWriter;
  readonly #asks = new Map<string, { kind: AskKind; session: string; callId: string | null }>();
  /** Those that an earlier process has told of. */
  readonly #before = new Map<string, AskKind>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  get isAny(): boolean {
    return this.#asks.size > 0 || this.#before.size > 0;
  }

  /**
   * @param about the call it belongs to as the log calls it, and the subagent that asks
   */
  asked(kind: AskKind, asked: Fields, about: { toolUseId: string | null; by: string | null; isMain: boolean }): void {
    const id = idOf(asked.id);
    const session = idOf(asked.sessionID);
    if (id === null || session === null || this.#asks.has(id)) return;
    const callId = idOf(fieldsOf(asked.tool).callID);
    remember(this.#asks, id, { kind, session, callId }, MAX_ASKS);
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
  listed(kind: AskKind, list: unknown): void {
    const ids = new Set(listOf(list).map((one) => idOf(fieldsOf(one).id)));
    for (const [id, ask] of this.#asks) if (ask.kind === kind && !ids.has(id)) this.#end(id, 'unknown');
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
    for (const [id, ask] of this.#asks) if (isMeant(ask)) this.#end(id, outcome);
  }

  #end(id: string, outcome: RequestResolvedValue['outcome']): void {
    this.#asks.delete(id);
    this.#before.delete(id);
    this.#writer.resolved(id, outcome);
  }
}
