import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { setBounded } from '../../adapters/bounded-map';
import { lineText } from '../../adapters/claude/transcript-line';
import { parseNotifications } from '../../adapters/claude/transcript-tasks';

/** What a wait was handed, and whether it has shown it. JSON: it outlives the companion. */
export interface WaitedMessage {
  claim: string;
  messageIds: readonly string[];
  /** When it was handed; once it is shown, when that was. Epoch milliseconds. */
  at: number;
  isShown: boolean;
}

/** How long the agent may take to hear of the end of its wait. After it the message is owed like any other. */
const HEARD_MS = 90_000;
/** Most calls that are known to be waits. */
const MOST_WAITS = 64;
/** Ours, however the agent may have written the command around it. */
const RUNS_WAIT = /\binterlude(?:\.mjs)?['"]?\s(?:[^|;&\n]*\s)?wait\b/;

/**
 * Messages of one session that reach its agent by a wait of its own. The transcript tells when the agent hears that the
 * wait has ended: the turn in which it does answers them.
 */
export class WaitedMessages {
  #all: readonly WaitedMessage[] = [];
  /** Tool calls that run a wait. */
  readonly #waits = new Map<string, true>();

  get all(): readonly WaitedMessage[] {
    return this.#all;
  }

  recall(all: readonly WaitedMessage[]): void {
    this.#all = [...all, ...this.#all];
  }

  has(messageId: string, now: number): boolean {
    return this.#all.some(
      ({ messageIds, at, isShown }) => messageIds.includes(messageId) && (!isShown || now - at < HEARD_MS),
    );
  }

  put(claim: string, messageIds: readonly string[], at: number): void {
    this.#all = [...this.#all, { claim, messageIds, at, isShown: false }];
  }

  /** @returns what it was; empty for what was not handed */
  shown(claim: string, at: number): readonly string[] {
    const its = this.#all.find((one) => one.claim === claim && !one.isShown);
    if (its === undefined) return [];
    this.#all = this.#all.map((one) => (one === its ? { ...one, at, isShown: true } : one));
    return its.messageIds;
  }

  givenBack(claim: string): void {
    this.#all = this.#all.filter((one) => one.claim !== claim || one.isShown);
  }

  /** @returns messages that the agent has, according to this line of the transcript */
  read(line: Fields): string[] {
    for (const block of listOf(fieldsOf(line.message).content).map(fieldsOf)) {
      const id = textOf(block.id);
      const command = textOf(fieldsOf(block.input).command);
      if (block.type === 'tool_use' && id !== null && command !== null && RUNS_WAIT.test(command)) {
        setBounded(this.#waits, id, true, MOST_WAITS);
      }
    }
    if (this.#all.length === 0 || !this.#tellsOfWait(line)) return [];
    const heard = this.#all.flatMap(({ messageIds }) => messageIds);
    this.#all = [];
    return heard;
  }

  #tellsOfWait(line: Fields): boolean {
    if ((line.type !== 'user' && line.type !== 'attachment') || textOf(line.agentId) !== null) return false;
    const { prompt } = fieldsOf(line.attachment);
    const text =
      lineText(line) ||
      (textOf(prompt) ??
        listOf(prompt)
          .map((one) => textOf(fieldsOf(one).text))
          .join(''));
    return parseNotifications(text).some(
      // Another end is that of a wait which had nothing to show, or was killed before it had.
      ({ fields }) => fields.status === 'completed' && this.#waits.has(textOf(fields.tool_use_id) ?? ''),
    );
  }
}
