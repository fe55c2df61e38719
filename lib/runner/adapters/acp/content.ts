import type { FileEdit, RequestOpenedValue, RequestOption, RequestResolvedValue } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf } from '@interlude/protocol/fields';
import { displayInput } from '../writer/size-limits';

export interface ToolCall {
  /** Log id: the agent's id, unless an earlier call had it. */
  id: string;
  name: string;
  title: string;
  kind: string | null;
  /** Task of the calling subagent; null for the agent itself. */
  taskId: string | null;
  edits: FileEdit[];
  rawInput: unknown;
  /** Command output so far, from agents that stream it. */
  output: string;
  /** Characters beyond MAX_OUTPUT. */
  cutOutput: number;
  /** Reason for its refusal, by a person or on timeout. */
  refusal: string | null;
}

/**
 * Text of a content block; a placeholder for other types: `[image, image/png, 12 KB]`.
 * @see ACP v1, ContentBlock
 */
export function blockText(block: unknown): string {
  const { type, text, data, uri, name, title, mimeType, resource, size } = fieldsOf(block);
  switch (type) {
    case 'text':
      return typeof text === 'string' ? text : '';
    case 'image':
    case 'audio':
      return standIn(type, mimeType, base64Bytes(data));
    case 'resource_link':
      return standIn('link', textOf(title) ?? textOf(name), uri, mimeType, numberOf(size));
    case 'resource': {
      const embedded = fieldsOf(resource);
      if (typeof embedded.text === 'string') return embedded.text;
      return standIn('resource', embedded.uri, embedded.mimeType, base64Bytes(embedded.blob));
    }
    default:
      return typeof type === 'string' ? standIn(type) : '';
  }
}

export function promptText(blocks: unknown): string {
  return listOf(blocks)
    .map(blockText)
    .filter((text) => text !== '')
    .join('\n');
}

interface CallContent {
  text: string;
  edits: FileEdit[];
}

/** Text and edits of a tool call. @see ACP v1, ToolCallContent */
export function callContent(content: unknown): CallContent {
  const texts: string[] = [];
  const edits: FileEdit[] = [];
  for (const one of listOf(content)) {
    const { type, content: block, path, oldText, newText, terminalId } = fieldsOf(one);
    if (type === 'diff') {
      const file = textOf(path) ?? '(unnamed file)';
      edits.push({ path: file, before: textOf(oldText) ?? '', after: textOf(newText) ?? '' });
    } else if (type === 'terminal') texts.push(standIn('terminal', terminalId));
    else texts.push(blockText(block));
  }
  return { text: unfenced(texts.filter((text) => text !== '').join('\n')), edits };
}

/** Text of a call's raw output, used if its content is empty. */
export function outputText(rawOutput: unknown): string {
  if (typeof rawOutput === 'string') return rawOutput;
  if (Array.isArray(rawOutput)) return rawOutput.map(blockText).join('\n');
  const { formatted_output, aggregated_output, output, content, text } = fieldsOf(rawOutput);
  const found = [formatted_output, aggregated_output, output, content, text].find((one) => typeof one === 'string');
  if (typeof found === 'string') return found;
  return rawOutput === undefined || rawOutput === null ? '' : JSON.stringify(rawOutput);
}

function standIn(...parts: unknown[]): string {
  const words = parts.map((part) => (typeof part === 'number' ? size(part) : textOf(part))).filter(Boolean);
  return `[${words.join(', ')}]`;
}

function base64Bytes(data: unknown): number | null {
  return typeof data === 'string' && data !== '' ? Math.floor((data.length * 3) / 4) : null;
}

function size(bytes: number): string {
  return bytes < 1024 ? `${bytes} bytes` : `${Math.round(bytes / 1024).toLocaleString('en')} KB`;
}

/** Strips a code fence meant for Markdown clients. */
function unfenced(text: string): string {
  const fenced = /^```(?:console)?\n([\s\S]*?)\n?```$/.exec(text);
  return fenced?.[1] !== undefined && !fenced[1].includes('\n```') ? fenced[1] : text;
}

/** A longer title may have been truncated, so it can't replace the input. */
const MAX_TITLE = 8 * 1024;
const MAX_OPTIONS = 20;

/** @see ACP v1, `session/request_permission` */
export function permissionOf(
  requestId: string,
  { toolCall, options }: Fields,
  call: ToolCall | null,
): RequestOpenedValue {
  const { title, content, rawInput } = fieldsOf(toolCall);
  const shown = callContent(content);
  const requested = rawInput ?? call?.rawInput ?? compact({ title: textOf(title), text: shown.text });
  const isWhole = rawInput !== undefined || call?.rawInput !== undefined || (textOf(title) ?? '').length <= MAX_TITLE;
  const { input, options: offered } = displayInput(requested, optionsOf(options), isWhole);
  return compact({
    request_id: requestId,
    kind: 'permission' as const,
    tool_use_id: call?.id,
    tool_name: call?.name,
    title: textOf(title) ?? undefined,
    input,
    options: offered.length > 0 ? offered : undefined,
  });
}

function optionsOf(options: unknown): RequestOption[] {
  return listOf(options)
    .slice(0, MAX_OPTIONS)
    .flatMap((option) => {
      const { optionId, name, kind } = fieldsOf(option);
      const id = textOf(optionId);
      if (id === null) return [];
      const isAllowing = textOf(kind)?.startsWith('allow') === true;
      return [
        {
          id,
          label: textOf(name) ?? id,
          kind: isAllowing ? ('allow' as const) : ('deny' as const),
          ...(textOf(kind)?.endsWith('_always') === true ? { isLasting: true as const } : {}),
        },
      ];
    });
}

export type PermissionAnswer = { kind: 'option'; optionId: string } | { kind: 'cancelled' } | { kind: 'expired' };

/** Result for an answer. ACP lacks an outcome for a timeout, so `_meta` records it for the adapter. */
export function permissionResult(answer: PermissionAnswer, options: readonly RequestOption[] = []): Fields {
  if (answer.kind === 'option') return { outcome: { outcome: 'selected', optionId: answer.optionId } };
  if (answer.kind === 'cancelled') return { outcome: { outcome: 'cancelled' } };
  const denied = options.find(({ kind, isLasting }) => kind === 'deny' && isLasting !== true);
  const outcome = denied === undefined ? { outcome: 'cancelled' } : { outcome: 'selected', optionId: denied.id };
  return { outcome, _meta: { interlude: { expired: true } } };
}

/** Outcome of a result, given the request's options. */
export function outcomeOf(result: Fields, options: readonly RequestOption[]): RequestResolvedValue['outcome'] {
  if (fieldsOf(fieldsOf(result._meta).interlude).expired === true) return 'expired';
  const { outcome, optionId } = fieldsOf(result.outcome);
  if (outcome !== 'selected') return 'cancelled';
  const chosen = options.find(({ id }) => id === optionId);
  if (chosen === undefined) return 'unknown';
  return chosen.kind === 'allow' ? 'allowed' : 'denied';
}
