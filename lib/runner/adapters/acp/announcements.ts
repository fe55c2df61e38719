import { type Fields, textOf } from '@interlude/protocol/fields';
import { remember } from '../remember';
import { fitting } from '../within-reason';
import type { SessionWriter } from '../writer/session-writer';

const MAX_COMPACTIONS = 256;

type Tone = 'info' | 'warning' | 'error';

const COMPACTION: ReadonlyMap<unknown, readonly [text: string, tone: Tone]> = new Map([
  ['in_progress', ['The agent is compacting the conversation', 'info']],
  ['completed', ['The conversation was compacted', 'info']],
  ['failed', ['The conversation could not be compacted', 'error']],
  ['cancelled', ['The conversation was not compacted', 'warning']],
] as const);

/**
 * What an agent announces beside its turns, as lines in the transcript: it opens and ends none of them.
 *
 * @see ACP, Session Notices and Session Compaction
 */
export class Announcements {
  readonly #writer: SessionWriter;
  /** By compaction and status: each is announced once. */
  readonly #announced = new Map<string, true>();

  constructor(writer: SessionWriter) {
    this.#writer = writer;
  }

  /** `notice`. @returns false if it has no title */
  notice({ title, description, severity }: Fields): boolean {
    const [head, more] = [textOf(title), textOf(description)];
    if (head === null) return false;
    const text = more === null ? head : `${head}${/[.:!?]$/.test(head) ? '' : ':'} ${more}`;
    // Unknown severities say nothing of how grave it is.
    this.#writer.notice(text, severity === 'warning' || severity === 'error' ? severity : 'info');
    return true;
  }

  /** `compaction_update`, and the chunks of its summary, which are kept and not shown. */
  compaction(update: Fields): void {
    this.#writer.custom('acp:compaction', fitting(update));
    const { compactionId, status, error } = update;
    const said = COMPACTION.get(status);
    const key = `${textOf(compactionId) ?? ''} ${status}`;
    if (said === undefined || this.#announced.has(key)) return;
    remember(this.#announced, key, true, MAX_COMPACTIONS);
    const [text, tone] = said;
    this.#writer.notice(textOf(error) === null ? `${text}.` : `${text}: ${error}`, tone);
  }
}
