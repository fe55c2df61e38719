import { compact, type Fields, fieldsOf, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';
import { setBounded } from '../wire';
import { PERSONS } from './turn-attribution';

/** Converts a transcript line to the SDK's message. */
export function sdkMessage({ type, uuid, message, agentId, toolDenialKind, permissionDecision }: Fields): Fields {
  const results = blocksOf(message, 'tool_result');
  // The line's fields apply to its only result; the SDK names the tool call.
  const outcome = { non_execution_kind: toolDenialKind, permission_decision: permissionDecision };
  const meta = results.length === 1 ? [{ id: results[0]?.tool_use_id, ...outcome }] : undefined;
  return compact({ type, uuid, message, agent_id: agentId, tool_result_meta: meta });
}

/**
 * Author of a user-role line. `other`: a plugin, an observer, another session of the same person, an external event.
 */
type LineAuthor = 'person' | 'task' | 'timer' | 'other' | 'harness';

/** Since 2.1.329, the CLI sets at least one of these fields on each prompt. */
const PROVENANCE = ['origin', 'promptSource', 'turnOrigin'] as const;

/**
 * Determines the author from the line's fields, never from its text: people paste harness output. Only lines of older
 * CLIs, which lack those fields, are matched against the notification format.
 *
 * @see user lines of CLI 2.1.332: `origin.kind`, `promptSource`, `turnOrigin`, `isMeta`
 */
export function authorOf(line: Fields, text: string): LineAuthor {
  const { kind, subkind } = fieldsOf(line.origin);
  if (line.isCompactSummary === true) return 'harness';
  if (line.turnOrigin === 'scheduled' || subkind === 'scheduled-trigger') return 'timer';
  if (subkind !== undefined) return 'other';
  if (kind === 'task-notification' || line.turnOrigin === 'task_notification') return 'task';
  if (line.isMeta === true || line.isVisibleInTranscriptOnly === true) return 'harness';
  if (kind !== undefined) return PERSONS.has(kind) ? 'person' : 'other';
  if (line.promptSource === 'system') return 'harness';
  const isOld = PROVENANCE.every((name) => line[name] === undefined);
  return isOld && OLD_NOTICE.test(text) ? 'task' : 'person';
}

/** Only notifications; some CLIs add a line naming the output file. */
const OLD_NOTICE =
  /^(?:\s*<task-notification>(?:(?!<\/?task-notification>)[\s\S])*<\/task-notification>)+(?:\s*Read the output file to retrieve the result: \S+)?\s*$/;

/** A command a person typed, as the CLI wraps it. `output`: printed by a command that did not ask the model. */
interface TypedCommand {
  kind: 'slash' | 'shell' | 'output';
  text: string;
}

const TAGGED =
  /<(command-message|command-name|command-args|bash-input|bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>([\s\S]*?)<\/\1>/g;

/** @returns null unless the text consists only of command tags */
export function parseCommand(text: string): TypedCommand | null {
  if (!text.startsWith('<')) return null;
  const parts = new Map<string, string>();
  const rest = text.replace(TAGGED, (_whole, tag: string, inner: string) => {
    parts.set(tag, inner);
    return '';
  });
  if (parts.size === 0 || rest.trim() !== '') return null;
  const name = parts.get('command-name');
  if (name !== undefined) {
    const args = parts.get('command-args')?.trim() ?? '';
    return { kind: 'slash', text: args === '' ? name : `${name} ${args}` };
  }
  const shell = parts.get('bash-input');
  if (shell !== undefined) return { kind: 'shell', text: `! ${shell}` };
  if (parts.has('command-message') || parts.has('command-args')) return null;
  return {
    kind: 'output',
    text: [...parts.values()]
      .filter((part) => part.trim() !== '')
      .join('\n')
      .trim(),
  };
}

/** Returns the text with which a stop hook blocked the stop; null for other lines. */
export function stopFeedbackOf(line: Fields): string | null {
  const { content } = fieldsOf(line.message);
  const isBlock = line.type === 'user' && line.isMeta === true && `${content}`.startsWith('Stop hook feedback:');
  if (isBlock) return lineText(line);
  const { type, hookEvent, content: added } = fieldsOf(line.attachment);
  const isContext = line.type === 'attachment' && type === 'hook_additional_context' && hookEvent === 'Stop';
  return isContext && textOf(line.agentId) === null ? textsOf(added).join('\n') : null;
}

export function lineText(line: Fields): string {
  const { content } = fieldsOf(line.message);
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((block) => textOf(fieldsOf(block).text) ?? '')
    .join('');
}

/** Lines remembered: a misplaced line is near its parent. */
const MAX_LINES = 1_024;

/**
 * Assigns each main-thread line to the turn of its parent line, regardless of their order in the file, or to the newest
 * turn if the parent is unknown.
 */
export class LineTurns {
  readonly #turnOf = new Map<string, number>();
  #newest = 0;
  #opener: string | null = null;

  /** Notes that the line opens a turn; idempotent. */
  opened(line: Fields): void {
    const uuid = textOf(line.uuid);
    if (uuid !== null && uuid === this.#opener) return;
    this.#opener = uuid;
    this.#newest += 1;
    this.#assign(line, this.#newest);
  }

  /** True if the line belongs to an earlier turn. */
  isBehind(line: Fields): boolean {
    const turn = this.#turnOf.get(textOf(line.parentUuid) ?? '') ?? this.#newest;
    this.#assign(line, turn);
    return turn < this.#newest;
  }

  #assign(line: Fields, turn: number): void {
    const uuid = textOf(line.uuid);
    if (uuid !== null) setBounded(this.#turnOf, uuid, turn, MAX_LINES);
  }
}

/** Returns the SDK's message for a compaction or a local command's output; null for other system lines. */
export function systemMessage({ subtype, uuid, compactMetadata, content }: Fields): Fields | null {
  if (subtype === 'compact_boundary') {
    const { trigger, preTokens, postTokens } = fieldsOf(compactMetadata);
    const metadata = { trigger, pre_tokens: preTokens, post_tokens: postTokens };
    return { type: 'system', subtype, uuid, compact_metadata: metadata };
  }
  const output = subtype === 'local_command' ? LOCAL_OUTPUT.exec(`${content}`)?.[1]?.trim() : undefined;
  return output ? { type: 'system', subtype: 'local_command_output', uuid, content: output } : null;
}

const LOCAL_OUTPUT = /^<local-command-std(?:out|err)>([\s\S]*)<\/local-command-std(?:out|err)>$/;

/** Session the line was copied from; null for the session's own lines. */
export function forkOf(line: Fields): string | null {
  const of = textOf(fieldsOf(line.forkedFrom).sessionId) ?? textOf(line.requestSessionId);
  const own = textOf(line.sessionId);
  return own === null || of === own ? null : of;
}

/** Content blocks of one type. */
export function blocksOf(message: unknown, type: 'tool_use' | 'tool_result'): Fields[] {
  return listOf(fieldsOf(message).content)
    .map(fieldsOf)
    .filter((block) => block.type === type);
}

/** Limit of a tool result. A whole record is limited to 1 MiB of JSON, escapes included. */
const MAX_RESULT_CHARS = 200_000;
/** Largest block forwarded as the `rawEvent` of its stand-in. */
const MAX_RAW_CHARS = 16_384;

/** Placeholder for a non-text block: `[image: image/png, about 12 kB]`. */
export function standIn(block: unknown): string {
  const fields = fieldsOf(block);
  const type = textOf(fields.type) ?? 'content';
  const source = fieldsOf(fields.source);
  const data = textOf(source.data);
  const details = [
    textOf(fields.title) ?? textOf(fields.name) ?? textOf(fields.tool_name),
    textOf(source.media_type),
    textOf(source.url),
    data === null ? null : `about ${Math.max(1, Math.round((data.length * 3) / 4 / 1000))} kB`,
  ].filter((detail) => detail !== null);
  return details.length === 0 ? `[${type}]` : `[${type}: ${details.join(', ')}]`;
}

export function rawIfSmall(block: unknown): { rawEvent?: unknown } {
  const size = JSON.stringify(block)?.length ?? 0;
  return size > 0 && size <= MAX_RAW_CHARS ? { rawEvent: block } : {};
}

/** Joins the text of a message or tool result, one block a line. */
export function contentText(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? '' : JSON.stringify(content);
  return content.map(blockText).join('\n');
}

export function hasStandIns(content: unknown): boolean {
  return listOf(content).some((block) => typeof fieldsOf(block).text !== 'string');
}

export function resultText(content: unknown): string {
  const text = contentText(content);
  if (text.length <= MAX_RESULT_CHARS) return text;
  return `${truncateText(text, MAX_RESULT_CHARS)}\n… ${text.length - MAX_RESULT_CHARS} more characters are not shown.`;
}

function blockText(block: unknown): string {
  const { text } = fieldsOf(block);
  return typeof text === 'string' ? text : typeof block === 'string' ? block : standIn(block);
}
