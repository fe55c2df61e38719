import type { FileEdit } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, listOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';
import { unwrapErrorMessage } from '../wire';
import { hunksOf } from '../writer/part-events';

/** Names of Codex's own tools. */
export const SHELL = 'shell';
export const APPLY_PATCH = 'apply_patch';

/** A tool call so far. */
export interface ItemCall {
  name: string;
  args: object;
  result: string;
  isError: boolean;
  edits: FileEdit[];
}

/** @returns null if the item is not a call */
export function callOf(item: Fields): ItemCall | null {
  const call = (name: string, args: object, result = '', more: Partial<ItemCall> = {}): ItemCall => ({
    ...{ name, args: compact(args), result, isError: item.status === 'failed', edits: [] },
    ...more,
  });
  switch (item.type) {
    case 'commandExecution':
      return call(SHELL, { command: item.command, cwd: item.cwd }, commandResult(item), {
        isError: item.status === 'failed' || item.status === 'declined',
      });
    case 'fileChange': {
      const declined = item.status === 'declined';
      const files = listOf(item.changes).map((change) => {
        const { path, kind } = fieldsOf(change);
        return compact({ path, kind: fieldsOf(kind).type, to: fieldsOf(kind).move_path });
      });
      return call(APPLY_PATCH, { files }, declined ? DECLINED : changesText(item.changes), {
        isError: declined || item.status === 'failed',
        edits: item.status === 'completed' ? editsOf(item.changes) : [],
      });
    }
    case 'mcpToolCall': {
      const { server, tool, arguments: args, result, error } = item;
      const failure = textOf(fieldsOf(error).message);
      return call(`mcp__${textOf(server) ?? ''}__${textOf(tool) ?? ''}`, asArgs(args), failure ?? contentText(result), {
        isError: failure !== null || item.status === 'failed',
      });
    }
    case 'dynamicToolCall':
      return call(textOf(item.tool) ?? 'tool', asArgs(item.arguments), contentText({ content: item.contentItems }), {
        isError: item.success === false,
      });
    case 'collabAgentToolCall': {
      const { prompt, receiverThreadIds: agents, model } = item;
      return call(textOf(item.tool) ?? 'agent', { prompt, model, agents }, statesText(item.agentsStates));
    }
    case 'webSearch':
      return call('web_search', { query: item.query, action: item.action }, jsonText(item.results));
    case 'imageView':
      return call('view_image', { path: item.path });
    case 'imageGeneration':
      return call(
        'image_generation',
        { prompt: item.revisedPrompt },
        textOf(item.savedPath) ?? textOf(item.status) ?? '',
      );
    case 'sleep':
      return call('sleep', { durationMs: item.durationMs });
    default:
      return null;
  }
}

/** The command as typed, without the shell wrapper. */
export function typedCommand(item: Fields): string {
  const [first, ...others] = listOf(item.commandActions);
  const typed = others.length === 0 ? textOf(fieldsOf(first).command) : null;
  return typed ?? textOf(item.command) ?? 'a command';
}

/** A person's input as text, with placeholders for other content. */
export function inputText(content: unknown): string {
  return listOf(content)
    .map((entry) => {
      const { type, text, name, path, url } = fieldsOf(entry);
      if (type === 'text') return textOf(text) ?? '';
      return `[${[type, name ?? path ?? url].flatMap((word) => textOf(word)?.slice(0, 200) ?? []).join(': ')}]`;
    })
    .join('\n');
}

/** The summary, else the raw reasoning, which few models expose. */
export function thoughtOf(item: Fields): string {
  const summary = textsOf(item.summary);
  return (summary.length > 0 ? summary : textsOf(item.content)).join('\n\n');
}

/** Error for people. The model's server may nest its message in JSON. */
export function errorText(error: unknown): { message: string; code?: string } {
  const { message, codexErrorInfo: info } = fieldsOf(error);
  const text = textOf(message) ?? 'Codex gave no reason.';
  const [named] = Object.keys(fieldsOf(info));
  const code = textOf(info) ?? named;
  return { message: unwrapErrorMessage(text), ...(code === undefined ? {} : { code }) };
}

const DECLINED = 'It was not allowed.';

function commandResult({ status, aggregatedOutput, exitCode }: Fields): string {
  if (status === 'declined') return DECLINED;
  const output = textOf(aggregatedOutput) ?? '';
  const code = numberOf(exitCode);
  if (code === null || code === 0) return output;
  return `${output}${output === '' || output.endsWith('\n') ? '' : '\n'}[exit code ${code}]`;
}

function contentText(result: unknown): string {
  return listOf(fieldsOf(result).content)
    .map((part) => textOf(fieldsOf(part).text) ?? `[${textOf(fieldsOf(part).type) ?? 'content'}]`)
    .join('\n');
}

function statesText(states: unknown): string {
  return Object.entries(fieldsOf(states))
    .map(([thread, state]) => [thread, fieldsOf(state).status, fieldsOf(state).message].filter(Boolean).join(': '))
    .join('\n');
}

function asArgs(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : value === undefined ? {} : { input: value };
}

function jsonText(value: unknown): string {
  return value === undefined || value === null ? '' : JSON.stringify(value);
}

/**
 * Edits of a `fileChange` item: new and deleted files carry their content, changed ones a unified diff with one edit
 * per hunk.
 */
export function editsOf(changes: unknown): FileEdit[] {
  return listOf(changes).flatMap((entry) => {
    const change = fieldsOf(entry);
    const path = textOf(change.path);
    const diff = textOf(change.diff) ?? '';
    if (path === null) return [];
    const { type, move_path: to } = fieldsOf(change.kind);
    if (type === 'add') return [{ path, before: '', after: diff }];
    if (type === 'delete') return [{ path, before: diff, after: '' }];
    return hunksOf(diff).map(({ before, after }) => ({
      path: textOf(to) ?? path,
      before: linesOf(before),
      after: linesOf(after),
    }));
  });
}

function changesText(changes: unknown): string {
  return listOf(changes)
    .map((entry) => {
      const { path, kind, diff } = fieldsOf(entry);
      return `${textOf(fieldsOf(kind).type) ?? 'change'} ${textOf(path) ?? ''}\n${textOf(diff) ?? ''}`.trimEnd();
    })
    .join('\n\n');
}

function linesOf(lines: readonly string[]): string {
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`;
}
