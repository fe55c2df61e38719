import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { blockText } from './content';

/** Gemini's replay continues after the response; updates within this time still belong to it. */
const REPLAY_QUIET_MS = 500;
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
 * Skips the history that a loaded session replays, since the log holds it. Keeps a person's messages, to check which
 * ones the agent has. Ends after the response and a short silence, or with the next prompt.
 *
 * @see ACP v1, `session/load`
 */
export class Replay {
  readonly texts: string[] = [];
  #until = Number.POSITIVE_INFINITY;
  #message: string | null = null;
  #isOpen = false;

  /** Null until the response to the load. */
  get endsAt(): number | null {
    return Number.isFinite(this.#until) ? this.#until : null;
  }

  /** Notes the response to the load. From then on, silence ends the replay. */
  responded(now: number): void {
    this.#until = now + REPLAY_QUIET_MS;
  }

  end(): void {
    this.#until = Number.NEGATIVE_INFINITY;
  }

  /** @returns true if the update belongs to the replay */
  absorb(update: Fields, now: number): boolean {
    const { sessionUpdate, content, messageId } = update;
    if (now > this.#until || typeof sessionUpdate !== 'string' || !REPLAYED.has(sessionUpdate)) return false;
    if (this.#until !== Number.POSITIVE_INFINITY) this.responded(now);
    const isOfUser = sessionUpdate === 'user_message_chunk';
    if (isOfUser) {
      const id = textOf(messageId);
      const isContinued = this.#isOpen && this.#message === id;
      const before = isContinued ? (this.texts.pop() ?? '') : '';
      this.texts.push((before + blockText(fieldsOf(content))).slice(0, MAX_TEXT));
      if (this.texts.length > MAX_TEXTS) this.texts.shift();
      this.#message = id;
    }
    this.#isOpen = isOfUser;
    return true;
  }
}
