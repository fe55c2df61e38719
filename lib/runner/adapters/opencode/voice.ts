import type { FileEdit, PlanEntry } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { remember } from '../remember';
import type { Speaker } from '../writer/speaker';
import { editsOf, planOf } from './edits';
import { idOf } from './native-event';

/** Most parts of one session whose deltas are still of use. */
const MAX_PARTS = 500;
const KINDS = new Map<unknown, 'text' | 'thought'>([
  ['text', 'text'],
  ['reasoning', 'thought'],
]);
/** Stands for what was said of a part before: no agent says it, so the whole text takes its place. */
const SAID_BEFORE = '\uffff';

export interface ToolPart {
  id: string;
  tool: string;
  callId: string | null;
  status: string;
  input: Fields;
  metadata: Fields;
  /** The output, or why it failed. */
  result: string;
  isOver: boolean;
  plan: PlanEntry[] | null;
}

/** What one session of OpenCode says, part by part: the agent itself, or one subagent. */
export class Voice {
  readonly #speaker: () => Speaker;
  /** The kinds of texts and thoughts whose deltas are still of use. */
  readonly #kinds = new Map<string, 'text' | 'thought'>();

  constructor(speaker: () => Speaker) {
    this.#speaker = speaker;
  }

  /** @returns whether it was a text or a thought */
  text(part: Fields): boolean {
    const kind = KINDS.get(part.type);
    const id = idOf(part.id);
    if (kind === undefined || id === null) return false;
    const { end } = fieldsOf(part.time);
    const text = typeof part.text === 'string' ? part.text : '';
    this.#speaker().sayWhole(kind, id, text);
    if (typeof end === 'number') {
      this.#speaker().endText(id);
      this.#kinds.delete(id);
    } else remember(this.#kinds, id, kind, MAX_PARTS);
    return true;
  }

  /** Adds to a part. A part that another one cut off waits for its whole text. */
  delta(partId: string, field: string, delta: string): void {
    const kind = this.#kinds.get(partId);
    if (field !== 'text' || kind === undefined || this.#speaker().textState(kind, partId) === 'ended') return;
    this.#speaker().say(kind, partId, delta);
  }

  /** Continues a part that a process before this one began. */
  saidBefore(partId: string): void {
    this.delta(partId, 'text', SAID_BEFORE);
  }

  tool(part: Fields): ToolPart | null {
    const id = idOf(part.id);
    if (part.type !== 'tool' || id === null) return null;
    const state = fieldsOf(part.state);
    const tool = truncateText(textOf(part.tool) ?? 'tool', 200);
    const status = textOf(state.status) ?? 'pending';
    const failed = status === 'error';
    const isOver = failed || status === 'completed';
    const result = textOf(failed ? state.error : state.output) ?? '';
    const input = fieldsOf(state.input);
    const speaker = this.#speaker();
    speaker.call(id, tool);
    if (status !== 'pending') {
      speaker.args(id, input);
      speaker.endCall(id);
    }
    const edits: FileEdit[] = status === 'completed' ? editsOf(tool, state) : [];
    if (isOver) speaker.result(id, result, { isError: failed, edits });
    const plan = status === 'pending' ? null : planOf(tool, state);
    return {
      id,
      tool,
      callId: idOf(part.callID),
      status,
      input,
      metadata: fieldsOf(state.metadata),
      result,
      isOver,
      plan,
    };
  }
}
