import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { blockText } from './content';

/** Gemini's replay goes on behind the answer that it is over: what comes so soon after the last of it is still part of it. */
export const REPLAY_QUIET_MS = 500;
/** Most messages that are kept, and the length of each. */
const MAX_TEXTS = 1_000;
const MAX_TEXT = 64 * 1024;

const REPLAYED = new Set([
  'user_message_chunk',
  'agent_message_chunk',
  'agent_thought_chunk',
  'tool_call',
  'tool_call_update',
  'plan',
  'async_task_spawned',
  'async_task_progress',
  'async_task_state_update',
]);

/**
 * A session that is loaded tells all of its past once more: it is told already, and only what people wrote is kept, to
 * see whether the agent has a message. It ends with the answer and a short silence, or with the next prompt.
 *
 * @see ACP v1, `session/load`
 */
export class Replay {
  readonly texts: string[] = [];
  #until = Number.POSITIVE_INFINITY;
  #message: string | null = null;
  #isOpen = false;

  /** Null while the agent has not answered. */
  get endsAt(): number | null {
    return Number.isFinite(this.#until) ? this.#until : null;
  }

  /** The agent has answered: from here on, silence ends it. */
  answered(now: number): void {
    this.#until = now + REPLAY_QUIET_MS;
  }

  over(): void {
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** @returns whether that is all there is to this update */
  takes(update: Fields, now: number): boolean {
    const { sessionUpdate, content, messageId } = update;
    if (now > this.#until || typeof sessionUpdate !== 'string' || !REPLAYED.has(sessionUpdate)) return false;
    if (this.#until !== Number.POSITIVE_INFINITY) this.answered(now);
    const isOfUser = sessionUpdate === 'user_message_chunk';
    if (isOfUser) {
      const id = textOf(messageId);
      const goesOn = this.#isOpen && this.#message === id;
      const before = goesOn ? (this.texts.pop() ?? '') : '';
      this.texts.push((before + blockText(fieldsOf(content))).slice(0, MAX_TEXT));
      if (this.texts.length > MAX_TEXTS) this.texts.shift();
      this.#message = id;
    }
    this.#isOpen = isOfUser;
    return true;
  }
}
