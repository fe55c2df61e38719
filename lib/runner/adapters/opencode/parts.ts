import type { FileEdit, PlanEntry } from '@interlude/protocol/ag-ui';
import { type Fields, fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../bounded-map';
import type { PartAssembler } from '../writer/part-assembler';
import { hunksOf, planEntry } from '../writer/part-events';
import { idOf } from './native-event';

/** Open parts per session. */
const MAX_PARTS = 500;
const KINDS = new Map<unknown, 'text' | 'thought'>([
  ['text', 'text'],
  ['reasoning', 'thought'],
]);
/** Placeholder for text written by an earlier process. No agent emits it, so the full text replaces it. */
const EARLIER_TEXT = '\uffff';

export interface ToolPart {
  id: string;
  tool: string;
  callId: string | null;
  status: string;
  input: Fields;
  metadata: Fields;
  /** Output or error. */
  result: string;
  isOver: boolean;
  plan: PlanEntry[] | null;
}

/** Writes the parts of one session: the agent's or a subagent's. */
export class PartWriter {
  readonly #parts: () => PartAssembler;
  /** Kinds of the open texts and thoughts. */
  readonly #kinds = new Map<string, 'text' | 'thought'>();

  constructor(parts: () => PartAssembler) {
    this.#parts = parts;
  }

  /** @returns false if the part is neither text nor thought */
  text(part: Fields): boolean {
    const kind = KINDS.get(part.type);
    const id = idOf(part.id);
    if (kind === undefined || id === null) return false;
    const { end } = fieldsOf(part.time);
    const text = typeof part.text === 'string' ? part.text : '';
    this.#parts().setText(kind, id, text);
    if (typeof end === 'number') {
      this.#parts().endText(id);
      this.#kinds.delete(id);
    } else setBounded(this.#kinds, id, kind, MAX_PARTS);
    return true;
  }

  /** Appends to a part. An interrupted part waits for its full text. */
  delta(partId: string, field: string, delta: string): void {
    const kind = this.#kinds.get(partId);
    if (field !== 'text' || kind === undefined || this.#parts().textState(kind, partId) === 'ended') return;
    this.#parts().appendText(kind, partId, delta);
  }

  /** Continues a part of an earlier process. */
  resume(partId: string): void {
    this.delta(partId, 'text', EARLIER_TEXT);
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
    const parts = this.#parts();
    parts.startCall(id, tool);
    if (status !== 'pending') {
      parts.setArgs(id, input);
      parts.endCall(id);
    }
    const edits: FileEdit[] = status === 'completed' ? editsOf(tool, state) : [];
    if (isOver) parts.setResult(id, result, { isError: failed, edits });
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

/** Edits of a completed call. @see opencode-ai 1.18.33: the tools edit, write, apply_patch */
function editsOf(tool: string, state: Fields): FileEdit[] {
  const input = fieldsOf(state.input);
  const metadata = fieldsOf(state.metadata);
  const { file } = fieldsOf(metadata.filediff);
  const path = textOf(file) ?? textOf(metadata.filepath) ?? textOf(input.filePath) ?? '';
  if (tool === 'edit' && typeof input.oldString === 'string' && typeof input.newString === 'string') {
    return [{ path, before: input.oldString, after: input.newString }];
  }
  // The former content of an overwritten file is unknown.
  if (tool === 'write') {
    return metadata.exists === false && typeof input.content === 'string'
      ? [{ path, before: '', after: input.content }]
      : [];
  }
  return listOf(metadata.files).flatMap((changed) => {
    const { filePath, relativePath, patch, diff } = fieldsOf(changed);
    const text = textOf(patch) ?? textOf(diff);
    return text === null ? [] : [editOfPatch(textOf(filePath) ?? textOf(relativePath) ?? '', text)];
  });
}

/** One edit for all hunks of a unified diff. */
function editOfPatch(path: string, patch: string): FileEdit {
  const hunks = hunksOf(patch);
  const side = (name: 'before' | 'after') => hunks.flatMap((hunk) => hunk[name]).join('\n');
  return { path, before: side('before'), after: side('after') };
}

const STATUSES: ReadonlySet<unknown> = new Set(['pending', 'in_progress', 'completed']);

/** Plan of a `todowrite` call; null for other calls. */
function planOf(tool: string, state: Fields): PlanEntry[] | null {
  const todos = fieldsOf(state.input).todos;
  if (tool !== 'todowrite' || !Array.isArray(todos)) return null;
  return todos
    .map(fieldsOf)
    .filter(({ content, status }) => textOf(content) !== null && STATUSES.has(status))
    .map(({ content, status, priority }) => planEntry(content, status, priority));
}
