import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { MAX_ID_LENGTH } from '@interlude/protocol/limits';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import { answerId, newMessages, type RunInput } from './agui-frames';
import { runOf } from './event-words';

const MAX_POSTED = 16;
/** Most messages that are remembered as having a turn. */
const MAX_ASKED = 512;

/** Posted runs that no stream has started yet. */
export class PostedRuns {
  readonly #inputs = new Map<string, RunInput>();
  /** Messages that a turn has named. */
  readonly #asked = new Map<string, true>();
  /** Id of the last message of the run that was taken last. */
  #lastAsked: string | null = null;

  add(input: RunInput): void {
    remember(this.#inputs, input.runId, input, MAX_POSTED);
  }

  has(runId: string): boolean {
    return this.#inputs.has(runId);
  }

  /** Removes a run that has started or was refused. */
  take(runId: string): RunInput | undefined {
    const input = this.#inputs.get(runId);
    this.#inputs.delete(runId);
    if (input !== undefined) this.#lastAsked = textOf(input.messages.at(-1)?.id);
    return input;
  }

  /** Id of the posted run that a RUN_STARTED starts, by its name or by its last message; null if there is none. */
  idIn(started: Fields): string | null {
    const input = fieldsOf(started.input);
    for (const name of [runOf(started), textOf(input.runId)]) if (name !== null && this.#inputs.has(name)) return name;
    const ids = new Set(listOf(input.messages).map((message) => textOf(fieldsOf(message).id)));
    for (const [runId, { messages }] of this.#inputs) {
      const last = textOf(messages.at(-1)?.id);
      if (last !== null && ids.has(last)) return runId;
    }
    return null;
  }

  /** Whether a RUN_STARTED answers the message that the run taken last has answered. */
  isLast(started: Fields): boolean {
    const last = textOf(fieldsOf(listOf(fieldsOf(started.input).messages).at(-1)).id);
    return last !== null && last === this.#lastAsked;
  }

  /** Messages of people that no turn has answered yet. Earlier failed attempts count as answered. */
  newlyAsked({ messages }: RunInput): { id: string; content: unknown }[] {
    return newMessages(messages).flatMap(({ id: name, role, toolCallId, content }) => {
      const id = textOf(name);
      const isPersons = role === 'user' || (role === 'tool' && id !== answerId(textOf(toolCallId) ?? ''));
      if (!isPersons || id === null || this.#asked.has(id)) return [];
      const short = truncateText(id, MAX_ID_LENGTH);
      remember(this.#asked, short, true, MAX_ASKED);
      return [{ id: short, content }];
    });
  }
}
