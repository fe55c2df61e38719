import type { FileEdit, PlanEntry } from '@/lib/protocol/ag-ui';
import { cutText } from '@/lib/protocol/cut-text';
import { type Fields, fieldsOf, textOf } from '@/lib/protocol/fields';
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
  /** Texts and thoughts that have begun and not ended, and whether deltas go on where they stand. */
  readonly #open = new Map<string, { kind: 'text' | 'thought'; goesOn: boolean }>();
  #saying: string | null = null;

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
    const hasEnded = typeof end === 'number';
    if (text !== '') this.#switchTo(id);
    this.#speaker().sayWhole(kind, id, text);
    if (hasEnded) {
      this.#speaker().endText(id);
      this.#open.delete(id);
    } else if (!this.#open.has(id)) remember(this.#open, id, { kind, goesOn: true }, MAX_PARTS);
    return true;
  }

  /** Told before the whole of it is: what was cut off by something else waits for that. */
  delta(partId: string, field: string, delta: string): void {
    const open = this.#open.get(partId);
    if (field !== 'text' || open === undefined || !open.goesOn || delta === '') return;
    this.#switchTo(partId);
    this.#speaker().say(open.kind, partId, delta);
  }

  /** A part of which something was said by a process that is gone. */
  saidBefore(partId: string): void {
    const open = this.#open.get(partId);
    if (open !== undefined) this.delta(partId, 'text', SAID_BEFORE);
  }

  /** The turn has ended, and with it what was being said. */
  cut(): void {
    this.#switchTo(null);
  }

  tool(part: Fields): ToolPart | null {
    const id = idOf(part.id);
    if (part.type !== 'tool' || id === null) return null;
    const state = fieldsOf(part.state);
    const tool = cutText(textOf(part.tool) ?? 'tool', 200);
    const status = textOf(state.status) ?? 'pending';
    const failed = status === 'error';
    const isOver = failed || status === 'completed';
    const result = textOf(failed ? state.error : state.output) ?? '';
    const input = fieldsOf(state.input);
    this.#switchTo(null);
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

  /** Whatever was being said is not any more; its deltas would be told as another text. */
  #switchTo(partId: string | null): void {
    if (this.#saying === partId) return;
    const before = this.#saying === null ? undefined : this.#open.get(this.#saying);
    if (before !== undefined) before.goesOn = false;
    this.#saying = partId;
  }
}
